package webhooks

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Workload is what the rules read of a Pod or a Deployment.
type Workload struct {
	Pod      *corev1.PodSpec
	path     string // of the pod's spec in the object
	replicas *int32
}

type container struct {
	*corev1.Container
	path string
}

// Empty returns an object to decode into; nil for kinds that no rule is about.
func Empty(kind string) runtime.Object {
	switch kind {
	case "Deployment":
		return &appsv1.Deployment{}
	case "Pod":
		return &corev1.Pod{}
	}
	return nil
}

// Of returns the workload of a decoded object.
func Of(object runtime.Object) Workload {
	switch typed := object.(type) {
	case *appsv1.Deployment:
		return Workload{Pod: &typed.Spec.Template.Spec, path: "spec.template.spec", replicas: typed.Spec.Replicas}
	case *corev1.Pod:
		return Workload{Pod: &typed.Spec, path: "spec"}
	}
	panic(fmt.Sprintf("no rule is about %T", object))
}

// Decode returns the workload in an object's JSON.
func Decode(kind string, raw []byte) (Workload, error) {
	object := Empty(kind)
	if err := json.Unmarshal(raw, object); err != nil {
		return Workload{}, err
	}
	return Of(object), nil
}

func (workload Workload) containers() []container {
	all := make([]container, 0, len(workload.Pod.Containers)+len(workload.Pod.InitContainers))
	for list, containers := range [][]corev1.Container{workload.Pod.Containers, workload.Pod.InitContainers} {
		field := []string{"containers", "initContainers"}[list]
		for index := range containers {
			each := &containers[index]
			all = append(all, container{each, workload.path + "." + field + "[name=" + each.Name + "]"})
		}
	}
	return all
}

// Namespaces are those that production's rules hold in: by name, or by a label that a cache knows.
type Namespaces map[string]map[string]string

// InForce says whether the rules hold in a namespace.
func (labels Namespaces) InForce(namespace string) bool {
	return namespace == "production" || labels[namespace]["environment"] == "production"
}
