// Package webhooks decides in Go what config/policies/production.yaml and security-defaults decide of the benchmark's
// bodies. Both Go webhooks share it; they differ in how they read a request and write the answer.
package webhooks

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	registry    = "registry.company.com"
	maxReplicas = 10
)

// Violation is one line of a denial.
type Violation struct{ Policy, Field, Message string }

// Validate returns all violations of an object.
func Validate(workload Workload) []Violation {
	var found []Violation
	for _, container := range workload.containers() {
		if host := registryOf(container.Image); container.Image != "" && host != registry {
			found = append(found, violation("image-registries", container.path+".image",
				fmt.Sprintf("%q comes from %s; images must come from approved registry %s", container.Image, host, registry),
				"Push it there, or ask for an exception."))
		}
	}
	if workload.replicas != nil && *workload.replicas > maxReplicas {
		found = append(found, violation("replica-limits", "spec.replicas",
			fmt.Sprintf("%d; production workloads cannot exceed %d replicas", *workload.replicas, maxReplicas),
			fmt.Sprintf("Set it to %d or less.", maxReplicas)))
	}
	for _, container := range workload.containers() {
		if missing := missingLimits(container.Resources, workload.Pod.Resources); missing != "" {
			found = append(found, violation("resource-limits", container.path+".resources.limits",
				missing+" missing; resource limits required in production", "Set both."))
		}
	}
	return found
}

// Worse returns what was not there before an update.
func Worse(found, before []Violation) []Violation {
	known := make(map[Violation]bool, len(before))
	for _, each := range before {
		known[each] = true
	}
	var worse []Violation
	for _, each := range found {
		if !known[each] {
			worse = append(worse, each)
		}
	}
	return worse
}

// Message returns the text of a denial.
func Message(found []Violation) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d violations", len(found))
	for _, each := range found {
		text.WriteString("\n- " + each.Policy + ": " + each.Message)
	}
	return text.String()
}

func violation(policy, field, fault, fix string) Violation {
	return Violation{policy, field, field + ": " + fault + ". " + fix}
}

func registryOf(image string) string {
	host, _, hasPath := strings.Cut(image, "/")
	if hasPath && (host == "localhost" || strings.ContainsAny(host, ".:")) {
		return strings.ToLower(host)
	}
	return "docker.io"
}

// missingLimits returns which of cpu and memory neither the container nor its pod as a whole limits.
func missingLimits(own corev1.ResourceRequirements, pod *corev1.ResourceRequirements) string {
	var missing []string
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		limit, found := own.Limits[name]
		if (!found || limit.IsZero()) && pod != nil {
			limit, found = pod.Limits[name]
		}
		if !found || limit.IsZero() {
			missing = append(missing, string(name))
		}
	}
	return strings.Join(missing, " and ")
}
