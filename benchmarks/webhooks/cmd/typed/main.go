// Command typed is a webhook as one writes it by hand: net/http, the types of k8s.io/api, patches made directly.
package main

import (
	"encoding/json"
	"io"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"

	"example.invalid/webhooks"
)

type decide func(*admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)

func main() {
	flags := webhooks.Parse()
	flags.Serve(serve(flags.Namespaces, validate), serve(flags.Namespaces, mutate))
}

func serve(namespaces webhooks.Namespaces, decide decide) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			http.Error(writer, err.Error(), http.StatusBadRequest)
			return
		}
		var review admissionv1.AdmissionReview
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

func validate(request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	workload, err := webhooks.Decode(request.Kind.Kind, request.Object.Raw)
	if err != nil {
		return nil, err
	}
	found := webhooks.Validate(workload)
	if len(found) > 0 && request.OldObject.Raw != nil {
		before, err := webhooks.Decode(request.Kind.Kind, request.OldObject.Raw)
		if err != nil {
			return nil, err
		}
		found = webhooks.Worse(found, webhooks.Validate(before))
	}
	return webhooks.Verdict(request.Name, request.Kind, found), nil
}

func mutate(request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	workload, err := webhooks.Decode(request.Kind.Kind, request.Object.Raw)
	if err != nil {
		return nil, err
	}
	return webhooks.Patched(workload)
}
