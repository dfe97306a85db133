package webhooks

import (
	corev1 "k8s.io/api/core/v1"
)

// Partial has the fields of a Pod or a Deployment that the rules read, and no others: the rest of the JSON is skipped.
type Partial struct {
	Spec struct {
		partialPod
		Replicas *int32 `json:"replicas"`
		Template struct {
			Spec partialPod `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

type partialPod struct {
	Containers      []partialContainer           `json:"containers"`
	InitContainers  []partialContainer           `json:"initContainers"`
	Resources       *corev1.ResourceRequirements `json:"resources"`
	SecurityContext *corev1.PodSecurityContext   `json:"securityContext"`
	OS              *corev1.PodOS                `json:"os"`
	HostUsers       *bool                        `json:"hostUsers"`
}

type partialContainer struct {
	Name            string                      `json:"name"`
	Image           string                      `json:"image"`
	Resources       corev1.ResourceRequirements `json:"resources"`
	SecurityContext *corev1.SecurityContext     `json:"securityContext"`
}

// Workload returns what the rules read.
func (object Partial) Workload(kind string) Workload {
	if kind == "Pod" {
		return Workload{Pod: object.Spec.typed(), path: "spec"}
	}
	return Workload{Pod: object.Spec.Template.Spec.typed(), path: "spec.template.spec", replicas: object.Spec.Replicas}
}

func (pod partialPod) typed() *corev1.PodSpec {
	return &corev1.PodSpec{
		Containers:      typedContainers(pod.Containers),
		InitContainers:  typedContainers(pod.InitContainers),
		Resources:       pod.Resources,
		SecurityContext: pod.SecurityContext,
		OS:              pod.OS,
		HostUsers:       pod.HostUsers,
	}
}

func typedContainers(partial []partialContainer) []corev1.Container {
	containers := make([]corev1.Container, len(partial))
	for index, container := range partial {
		containers[index] = corev1.Container{
			Name:            container.Name,
			Image:           container.Image,
			Resources:       container.Resources,
			SecurityContext: container.SecurityContext,
		}
	}
	return containers
}
