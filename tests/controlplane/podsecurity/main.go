// Answers, for each line of JSON with a pod, what each level and version of the Pod Security Standards finds about it.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

type question struct {
	Pod   corev1.Pod
	Asked [][2]string // level and version
}

func main() {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		log.Fatal(err)
	}
	lines := bufio.NewReader(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked question
		if err := json.Unmarshal(line, &asked); err != nil {
			log.Fatal(err)
		}
		found := [][]string{}
		for _, each := range asked.Asked {
			version, err := api.ParseVersion(each[1])
			if err != nil {
				log.Fatal(err)
			}
			standard := api.LevelVersion{Level: api.Level(each[0]), Version: version}
			results := evaluator.EvaluatePod(standard, &asked.Pod.ObjectMeta, &asked.Pod.Spec)
			found = append(found, append([]string{}, policy.AggregateCheckResults(results).ForbiddenReasons...))
		}
		if err := answers.Encode(found); err != nil {
			log.Fatal(err)
		}
	}
}
