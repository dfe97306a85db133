// Command partial is command typed with structs of the fields that the rules read: one pass over the JSON, and no field
// decoded that no rule reads. It takes the spec of any kind for one with these fields, which is enough for a benchmark.
package main

import (
	"encoding/json"
	"io"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.invalid/webhooks"
)

type review struct {
	metav1.TypeMeta
	Request *request `json:"request"`
}

type request struct {
	UID       types.UID               `json:"uid"`
	Kind      metav1.GroupVersionKind `json:"kind"`
	Name      string                  `json:"name"`
	Namespace string                  `json:"namespace"`
	Object    webhooks.Partial        `json:"object"`
	OldObject json.RawMessage         `json:"oldObject"`
}

type decide func(*request) (*admissionv1.AdmissionResponse, error)

func main() {
	flags := webhooks.Parse()
	flags.Serve(serve(flags.Namespaces, validate), serve(flags.Namespaces, mutate))
}

func serve(namespaces webhooks.Namespaces, decide decide) http.HandlerFunc {
	return func(writer http.ResponseWriter, asked *http.Request) {
		body, err := io.ReadAll(asked.Body)
		if err != nil {
			http.Error(writer, err.Error(), http.StatusBadRequest)
			return
		}
		var review review
		if err := json.Unmarshal(body, &review); err != nil || review.Request == nil {
			http.Error(writer, "not an AdmissionReview", http.StatusBadRequest)
			return
		}
		response := &admissionv1.AdmissionResponse{Allowed: true}
		if asked := review.Request; webhooks.Empty(asked.Kind.Kind) != nil && namespaces.InForce(asked.Namespace) {
			if response, err = decide(asked); err != nil {
				http.Error(writer, err.Error(), http.StatusBadRequest)
				return
			}
		}
		response.UID = review.Request.UID
		webhooks.Answer(writer, review.TypeMeta, response)
	}
}

func validate(asked *request) (*admissionv1.AdmissionResponse, error) {
	found := webhooks.Validate(asked.Object.Workload(asked.Kind.Kind))
	if len(found) > 0 && len(asked.OldObject) > 0 && string(asked.OldObject) != "null" {
		var before webhooks.Partial
		if err := json.Unmarshal(asked.OldObject, &before); err != nil {
			return nil, err
		}
		found = webhooks.Worse(found, webhooks.Validate(before.Workload(asked.Kind.Kind)))
	}
	return webhooks.Verdict(asked.Name, asked.Kind, found), nil
}

func mutate(asked *request) (*admissionv1.AdmissionResponse, error) {
	return webhooks.Patched(asked.Object.Workload(asked.Kind.Kind))
}
