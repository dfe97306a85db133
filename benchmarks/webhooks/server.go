package webhooks

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"path/filepath"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Serve serves /validate and /mutate over TLS 1.3, by net/http.
func (flags Flags) Serve(validate, mutate http.HandlerFunc) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /validate", validate)
	mux.HandleFunc("POST /mutate", mutate)
	server := &http.Server{
		Addr:      fmt.Sprintf("127.0.0.1:%d", flags.Port),
		Handler:   mux,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13},
	}
	files := func(name string) string { return filepath.Join(flags.Certificates, name) }
	log.Fatal(server.ListenAndServeTLS(files("tls.crt"), files("tls.key")))
}

// Answer writes a response.
func Answer(writer http.ResponseWriter, typeMeta metav1.TypeMeta, response *admissionv1.AdmissionResponse) {
	answer, err := json.Marshal(&admissionv1.AdmissionReview{TypeMeta: typeMeta, Response: response})
	if err != nil {
		http.Error(writer, err.Error(), http.StatusInternalServerError)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	writer.Write(answer)
}

// Verdict returns the response to violations of an object; without any it is allowed.
func Verdict(name string, kind metav1.GroupVersionKind, found []Violation) *admissionv1.AdmissionResponse {
	if len(found) == 0 {
		return &admissionv1.AdmissionResponse{Allowed: true}
	}
	causes := make([]metav1.StatusCause, len(found))
	for index, violation := range found {
		causes[index] = metav1.StatusCause{
			Type: metav1.CauseType(violation.Policy), Message: violation.Message, Field: violation.Field,
		}
	}
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: Message(found),
		Details: &metav1.StatusDetails{Name: name, Group: kind.Group, Kind: kind.Kind, Causes: causes},
	}}
}

// Patched returns the response with the defaults of a workload as a patch.
func Patched(workload Workload) (*admissionv1.AdmissionResponse, error) {
	response := &admissionv1.AdmissionResponse{Allowed: true}
	operations := Default(workload)
	if operations == nil {
		return response, nil
	}
	patchType := admissionv1.PatchTypeJSONPatch
	patch, err := json.Marshal(operations)
	response.PatchType, response.Patch = &patchType, patch
	return response, err
}
