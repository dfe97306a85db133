// Command typed is a webhook as one writes it by hand: net/http, the types of k8s.io/api, patches made directly.
package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"path/filepath"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.invalid/webhooks"
)

type decide func(*admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)

func main() {
	flags := webhooks.Parse()
	namespaces := flags.Namespaces
	mux := http.NewServeMux()
	mux.HandleFunc("POST /validate", serve(namespaces, validate))
	mux.HandleFunc("POST /mutate", serve(namespaces, mutate))
	server := &http.Server{
		Addr:      fmt.Sprintf("127.0.0.1:%d", flags.Port),
		Handler:   mux,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13},
	}
	files := func(name string) string { return filepath.Join(flags.Certificates, name) }
	log.Fatal(server.ListenAndServeTLS(files("tls.crt"), files("tls.key")))
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
		answer, err := json.Marshal(&admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: response})
		if err != nil {
			http.Error(writer, err.Error(), http.StatusInternalServerError)
			return
		}
		writer.Header().Set("Content-Type", "application/json")
		writer.Write(answer)
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
	if len(found) == 0 {
		return &admissionv1.AdmissionResponse{Allowed: true}, nil
	}
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: webhooks.Message(found), Details: &metav1.StatusDetails{
			Name: request.Name, Group: request.Kind.Group, Kind: request.Kind.Kind, Causes: causes(found),
		},
	}}, nil
}

func causes(found []webhooks.Violation) []metav1.StatusCause {
	causes := make([]metav1.StatusCause, len(found))
	for index, each := range found {
		causes[index] = metav1.StatusCause{Type: metav1.CauseType(each.Policy), Message: each.Message, Field: each.Field}
	}
	return causes
}

func mutate(request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	workload, err := webhooks.Decode(request.Kind.Kind, request.Object.Raw)
	if err != nil {
		return nil, err
	}
	response := &admissionv1.AdmissionResponse{Allowed: true}
	if operations := webhooks.Default(workload); operations != nil {
		patchType := admissionv1.PatchTypeJSONPatch
		response.PatchType = &patchType
		response.Patch, err = json.Marshal(operations)
	}
	return response, err
}
