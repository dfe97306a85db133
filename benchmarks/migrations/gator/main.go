// Answers, for each line of JSON with a template, a constraint and objects, which objects Gatekeeper denies.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/open-policy-agent/frameworks/constraint/pkg/client/reviews"
	"github.com/open-policy-agent/gatekeeper/v3/apis"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/gator"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/gator/reader"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/mutation/types"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/target"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/util"
	admission "k8s.io/api/admission/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

type review struct {
	Request   admission.AdmissionRequest
	Namespace *core.Namespace
}

type question struct {
	Template   *unstructured.Unstructured
	Constraint *unstructured.Unstructured
	Inventory  []*unstructured.Unstructured
	Reviews    []review
}

// answer is an error of the template or the constraint, or for each review the messages of the denial.
type answer struct {
	Error    string     `json:"error,omitempty"`
	Messages [][]string `json:"messages"`
}

func main() {
	scheme := runtime.NewScheme()
	if err := apis.AddToScheme(scheme); err != nil {
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
		found, err := judge(scheme, asked)
		if err != nil {
			found = answer{Error: err.Error()}
		}
		if err := answers.Encode(found); err != nil {
			log.Fatal(err)
		}
	}
}

func judge(scheme *runtime.Scheme, asked question) (answer, error) {
	ctx := context.Background()
	found := answer{Messages: [][]string{}}
	client, err := gator.NewOPAClient(false, gator.WithK8sCEL())
	if err != nil {
		return found, err
	}
	template, err := reader.ToTemplate(scheme, asked.Template)
	if err != nil {
		return found, err
	}
	if _, err := client.AddTemplate(ctx, template); err != nil {
		return found, err
	}
	if _, err := client.AddConstraint(ctx, asked.Constraint); err != nil {
		return found, err
	}
	for _, each := range asked.Inventory {
		if _, err := client.AddData(ctx, each); err != nil {
			return found, err
		}
	}
	for _, each := range asked.Reviews {
		request := target.AugmentedReview{
			AdmissionRequest: &each.Request, Namespace: each.Namespace, Source: types.SourceTypeOriginal, IsAdmission: true,
		}
		responses, err := client.Review(ctx, request, reviews.EnforcementPoint(util.GatorEnforcementPoint))
		if err != nil {
			return found, err
		}
		messages := []string{}
		for _, result := range responses.Results() {
			messages = append(messages, result.Msg)
		}
		found.Messages = append(found.Messages, messages)
	}
	return found, nil
}
