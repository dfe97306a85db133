package webhooks

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Operation is one operation of a JSONPatch.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Default sets what security-defaults sets, and returns the same as operations of a patch.
func Default(workload Workload) []Operation {
	pod, path := workload.Pod, "/"+strings.ReplaceAll(workload.path, ".", "/")
	if pod.OS != nil && pod.OS.Name == corev1.Windows || pod.HostUsers != nil && !*pod.HostUsers {
		return nil
	}
	var operations []Operation
	set := func(at string, value any) { operations = append(operations, Operation{"add", path + at, value}) }
	lists := map[string][]corev1.Container{"/containers/": pod.Containers, "/initContainers/": pod.InitContainers}
	defaultPod(pod, lists, set)
	for list, containers := range lists {
		for index := range containers {
			defaultContainer(&containers[index], list+strconv.Itoa(index)+"/securityContext", set)
		}
	}
	return operations
}

func defaultPod(pod *corev1.PodSpec, lists map[string][]corev1.Container, set func(string, any)) {
	context := pod.SecurityContext
	if context == nil {
		context = &corev1.PodSecurityContext{}
	}
	before := *context
	if context.RunAsNonRoot == nil && !anyContainer(lists, isRoot) && !isZero(context.RunAsUser) {
		context.RunAsNonRoot = new(true)
	}
	if context.SeccompProfile == nil && !anyContainer(lists, isPrivileged) {
		context.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	if pod.SecurityContext == nil {
		pod.SecurityContext = context
		set("/securityContext", context)
		return
	}
	if before.RunAsNonRoot != context.RunAsNonRoot {
		set("/securityContext/runAsNonRoot", true)
	}
	if before.SeccompProfile != context.SeccompProfile {
		set("/securityContext/seccompProfile", context.SeccompProfile)
	}
}

func defaultContainer(container *corev1.Container, path string, set func(string, any)) {
	if isPrivileged(container) {
		return
	}
	isNew := container.SecurityContext == nil
	if isNew {
		container.SecurityContext = &corev1.SecurityContext{}
	}
	context := container.SecurityContext
	add := func(at string, value any) {
		if !isNew {
			set(path+at, value)
		}
	}
	if context.AllowPrivilegeEscalation == nil && !adds(container, "ALL", "SYS_ADMIN") {
		context.AllowPrivilegeEscalation = new(false)
		add("/allowPrivilegeEscalation", false)
	}
	if context.Capabilities == nil {
		context.Capabilities = &corev1.Capabilities{}
	}
	if !adds(container, "ALL") && !slices.Contains(context.Capabilities.Drop, "ALL") {
		context.Capabilities.Drop = append(context.Capabilities.Drop, "ALL")
		add("/capabilities", context.Capabilities)
	}
	if isNew {
		set(path, context)
	}
}

func anyContainer(lists map[string][]corev1.Container, is func(*corev1.Container) bool) bool {
	for _, containers := range lists {
		for index := range containers {
			if is(&containers[index]) {
				return true
			}
		}
	}
	return false
}

func isPrivileged(container *corev1.Container) bool {
	context := container.SecurityContext
	return context != nil && context.Privileged != nil && *context.Privileged
}

func isRoot(container *corev1.Container) bool {
	context := container.SecurityContext
	return context != nil && (isPrivileged(container) || isZero(context.RunAsUser) ||
		context.Capabilities != nil && len(context.Capabilities.Add) > 0)
}

func adds(container *corev1.Container, names ...corev1.Capability) bool {
	context := container.SecurityContext
	if context == nil || context.Capabilities == nil {
		return false
	}
	return slices.ContainsFunc(context.Capabilities.Add, func(each corev1.Capability) bool {
		return slices.Contains(names, each)
	})
}

func isZero(user *int64) bool { return user != nil && *user == 0 }
