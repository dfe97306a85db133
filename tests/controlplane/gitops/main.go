// Answers, for each line of JSON with an object as it is in Git, what Argo CD or Flux would say of the cluster's: a
// difference, or none. Both tools' own diff engines judge; only Argo CD's removal of ignored fields is written here,
// with the library and the query that Argo CD uses for it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/jsondiff"
	"github.com/itchyny/gojq"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kube-openapi/pkg/util/proto"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	argoManager = "argocd-controller"
	fluxManager = "kustomize-controller"
)

type question struct {
	// Of Argo CD: three-way, structured-merge, server-side, or server-side-mutated (IncludeMutationWebhook=true); or flux.
	Mode   string
	Object unstructured.Unstructured
	JQ     []string              // of Argo CD's ignoreDifferences: jqPathExpressions
	Ignore []jsondiff.IgnoreRule // of Flux's Kustomization or HelmRelease
}

type answer struct {
	Modified        bool
	Live, Predicted json.RawMessage `json:",omitempty"`
	Error           string          `json:",omitempty"`
}

type cluster struct {
	client client.Client
	parser *managedfields.GvkParser
	flux   *ssa.ResourceManager
}

func main() {
	here := connect(os.Args[1])
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
		found, err := here.compare(asked)
		if err != nil {
			found = answer{Error: err.Error()}
		}
		if err := answers.Encode(found); err != nil {
			log.Fatal(err)
		}
	}
}

func connect(kubeconfig string) cluster {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	config.QPS, config.Burst = 500, 500
	connection, err := client.New(config, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	document, err := discovery.NewDiscoveryClientForConfigOrDie(config).OpenAPISchema()
	if err != nil {
		log.Fatal(err)
	}
	models, err := proto.NewOpenAPIData(document)
	if err != nil {
		log.Fatal(err)
	}
	parser, err := managedfields.NewGVKParser(models, false)
	if err != nil {
		log.Fatal(err)
	}
	owner := ssa.Owner{Field: fluxManager, Group: "kustomize.toolkit.fluxcd.io"}
	return cluster{connection, parser, ssa.NewResourceManager(connection, nil, owner)}
}

func (here cluster) compare(asked question) (answer, error) {
	if asked.Mode == "flux" {
		options := ssa.DefaultDiffOptions()
		options.DriftIgnoreRules = asked.Ignore
		entry, live, merged, err := here.flux.Diff(context.Background(), asked.Object.DeepCopy(), options)
		if err != nil {
			return answer{}, err
		}
		return answer{Modified: entry.Action != ssa.UnchangedAction, Live: text(live), Predicted: text(merged)}, nil
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(asked.Object.GroupVersionKind())
	if err := here.client.Get(context.Background(), client.ObjectKeyFromObject(&asked.Object), live); err != nil {
		return answer{}, err
	}
	// Argo CD ignores every status by default (ignoreResourceStatusField: all); one may change during the dry run.
	result, err := diff.Diff(&asked.Object, live,
		diff.WithNormalizer(ignored(append([]string{".status"}, asked.JQ...))),
		diff.IgnoreAggregatedRoles(true),
		diff.WithGVKParser(here.parser),
		diff.WithManager(argoManager),
		diff.WithStructuredMergeDiff(asked.Mode == "structured-merge"),
		diff.WithServerSideDiff(strings.HasPrefix(asked.Mode, "server-side")),
		diff.WithIgnoreMutationWebhook(asked.Mode != "server-side-mutated"),
		diff.WithServerSideDryRunner(here),
	)
	if err != nil {
		return answer{}, err
	}
	return answer{Modified: result.Modified, Live: result.NormalizedLive, Predicted: result.PredictedLive}, nil
}

// Run applies an object server-side as a dry run, as Argo CD does for its server-side diff.
func (here cluster) Run(ctx context.Context, object *unstructured.Unstructured, manager string) (string, error) {
	applied := object.DeepCopy()
	err := here.client.Patch(ctx, applied, client.Apply, client.DryRunAll, client.ForceOwnership, client.FieldOwner(manager))
	return string(text(applied)), err
}

// ignored removes the paths of `ignoreDifferences` from both sides of a comparison: `del(PATH)`, as Argo CD does.
type ignored []string

func (paths ignored) Normalize(object *unstructured.Unstructured) error {
	for _, path := range paths {
		query, err := gojq.Parse(fmt.Sprintf("del(%s)", path))
		if err != nil {
			return err
		}
		var plain map[string]any
		if err := json.Unmarshal(text(object), &plain); err != nil {
			return err
		}
		value, _ := query.Run(plain).Next()
		left, isObject := value.(map[string]any)
		if !isObject {
			continue // a path that this object does not have: Argo CD skips it, too
		}
		stripped, err := json.Marshal(left)
		if err != nil {
			return err
		}
		if err := object.UnmarshalJSON(stripped); err != nil {
			return err
		}
	}
	return nil
}

func text(object *unstructured.Unstructured) json.RawMessage {
	if object == nil {
		return nil
	}
	encoded, err := json.Marshal(object.Object)
	if err != nil {
		log.Fatal(err)
	}
	return encoded
}
