// Command cel evaluates an expression about an object with cel-go, and prints the CPU time of one evaluation in
// microseconds: with the object decoded before, and with its decoding. It reads {"expression", "object"} from stdin.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"syscall"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
)

const rounds, evaluations = 7, 5000

func main() {
	var input struct {
		Expression string
		Object     json.RawMessage
	}
	if err := json.NewDecoder(os.Stdin).Decode(&input); err != nil {
		log.Fatal(err)
	}
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType), cel.OptionalTypes(), ext.Strings(), ext.Lists())
	if err != nil {
		log.Fatal(err)
	}
	ast, issues := env.Compile(input.Expression)
	if issues.Err() != nil {
		log.Fatal(issues.Err())
	}
	program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost), cel.CostLimit(10_000_000))
	if err != nil {
		log.Fatal(err)
	}
	decoded := decode(input.Object)
	evaluate := func(object any) {
		value, _, err := program.Eval(map[string]any{"object": object})
		if err != nil || value.Value() != true {
			log.Fatal(value, err)
		}
	}
	fmt.Printf("%.2f %.2f\n", best(func() { evaluate(decoded) }), best(func() { evaluate(decode(input.Object)) }))
}

func decode(text []byte) any {
	var object any
	if err := json.Unmarshal(text, &object); err != nil {
		log.Fatal(err)
	}
	return object
}

func best(work func()) float64 {
	lowest := 1e9
	for range rounds {
		began := cpu()
		for range evaluations {
			work()
		}
		lowest = min(lowest, float64((cpu()-began).Microseconds())/evaluations)
	}
	return lowest
}

func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
