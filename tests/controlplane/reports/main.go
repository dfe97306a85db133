// Reads reports as JSON from standard input, by the types that other tools use, and writes them again, one a line.
//
// A field that the type of a report does not have is an error: it would be lost.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	wgpolicy "github.com/kyverno/kyverno/api/policyreport/v1alpha2"
	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	decoder, encoder := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			fail(err)
		}
		read, err := report(raw)
		if err != nil {
			fail(err)
		}
		if err := encoder.Encode(read); err != nil {
			fail(err)
		}
	}
}

func report(raw []byte) (any, error) {
	var meta metav1.TypeMeta
	if err := json.Unmarshal(raw, &meta); err != nil {
		return nil, err
	}
	var typed any
	switch meta {
	case metav1.TypeMeta{APIVersion: "openreports.io/v1alpha1", Kind: "Report"}:
		typed = &openreports.Report{}
	case metav1.TypeMeta{APIVersion: "openreports.io/v1alpha1", Kind: "ClusterReport"}:
		typed = &openreports.ClusterReport{}
	case metav1.TypeMeta{APIVersion: "wgpolicyk8s.io/v1alpha2", Kind: "PolicyReport"}:
		typed = &wgpolicy.PolicyReport{}
	case metav1.TypeMeta{APIVersion: "wgpolicyk8s.io/v1alpha2", Kind: "ClusterPolicyReport"}:
		typed = &wgpolicy.ClusterPolicyReport{}
	default:
		return nil, fmt.Errorf("%s %s is no report", meta.APIVersion, meta.Kind)
	}
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	return typed, strict.Decode(typed)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
