package main

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// What a container that ends leaves as its termination message.
	messageAnnotation = "hollow.gatewright.io/termination-message"
	crashLoop         = "CrashLoopBackOff"
	firstRestart      = 100 * time.Millisecond
	lastRestart       = 5 * time.Minute
)

// started is the pod as a kubelet would report it once its containers have started.
func started(pod *core.Pod) *core.Pod {
	pod = pod.DeepCopy()
	now := meta.Now()
	ends := pod.Spec.RestartPolicy != core.RestartPolicyAlways
	status := &pod.Status
	status.ObservedGeneration = pod.Generation
	status.StartTime = &now
	status.HostIP, status.HostIPs = "127.0.0.1", []core.HostIP{{IP: "127.0.0.1"}}
	status.InitContainerStatuses = nil
	for _, container := range pod.Spec.InitContainers {
		sidecar := container.RestartPolicy != nil && *container.RestartPolicy == core.ContainerRestartPolicyAlways
		status.InitContainerStatuses = append(status.InitContainerStatuses, containerStatus(pod, container, !sidecar || ends, now))
	}
	status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, containerStatus(pod, container, ends, now))
	}
	status.Phase = phase(status.ContainerStatuses)
	ready := core.ConditionTrue
	for _, one := range status.ContainerStatuses {
		if !one.Ready {
			ready = core.ConditionFalse
		}
	}
	status.PodIP = podIP(pod)
	status.PodIPs = []core.PodIP{{IP: status.PodIP}}
	setPodCondition(status, core.PodInitialized, core.ConditionTrue, now)
	setPodCondition(status, core.ContainersReady, ready, now)
	setPodCondition(status, core.PodReady, ready, now)
	return pod
}

// containerStatus says that a container runs, has ended or cannot, by its image: of a registry under `.invalid` it is
// never pulled, `:never-ready` runs and is never ready, and `:fails` ends with exit code 1 each time it is started.
func containerStatus(pod *core.Pod, container core.Container, ends bool, now meta.Time) core.ContainerStatus {
	host, _, _ := strings.Cut(container.Image, "/")
	no, yes := false, true
	status := core.ContainerStatus{Name: container.Name, Image: container.Image, Started: &no}
	message := pod.Annotations[messageAnnotation]
	switch {
	case strings.HasSuffix(host, ".invalid"):
		status.State.Waiting = &core.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such host: " + host}
	case strings.HasSuffix(container.Image, ":fails"):
		failed := &core.ContainerStateTerminated{Reason: "Error", ExitCode: 1, Message: message, StartedAt: now, FinishedAt: now}
		if pod.Spec.RestartPolicy == core.RestartPolicyNever {
			status.State.Terminated = failed
			break
		}
		status.State.Waiting = &core.ContainerStateWaiting{Reason: crashLoop, Message: "back-off restarting failed container " + container.Name}
		status.LastTerminationState.Terminated = failed
	case strings.HasSuffix(container.Image, ":never-ready"):
		status.State.Running, status.Started = &core.ContainerStateRunning{StartedAt: now}, &yes
	case ends:
		status.State.Terminated = &core.ContainerStateTerminated{Reason: "Completed", Message: message, StartedAt: now, FinishedAt: now}
	default:
		status.State.Running, status.Started, status.Ready = &core.ContainerStateRunning{StartedAt: now}, &yes, true
	}
	return status
}

// phase is what a pod is in as its containers are.
func phase(containers []core.ContainerStatus) core.PodPhase {
	result := core.PodSucceeded
	for _, one := range containers {
		switch waiting, ended := one.State.Waiting, one.State.Terminated; {
		case waiting != nil && waiting.Reason != crashLoop:
			return core.PodPending
		case ended == nil:
			result = core.PodRunning
		case ended.ExitCode != 0 && result == core.PodSucceeded:
			result = core.PodFailed
		}
	}
	return result
}

// nextRestart is when the first of a pod's failed containers is started again: later each time. Zero: none is.
func nextRestart(pod *core.Pod) time.Time {
	var next time.Time
	for _, one := range pod.Status.ContainerStatuses {
		if one.State.Waiting == nil || one.State.Waiting.Reason != crashLoop {
			continue
		}
		wait := lastRestart
		if one.RestartCount < 12 {
			wait = min(firstRestart<<one.RestartCount, lastRestart)
		}
		at := one.LastTerminationState.Terminated.FinishedAt.Add(wait)
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// restarted is the pod once its failed containers were started again and failed as before.
func restarted(pod *core.Pod) *core.Pod {
	pod = pod.DeepCopy()
	now := meta.Now()
	for at := range pod.Status.ContainerStatuses {
		one := &pod.Status.ContainerStatuses[at]
		if one.State.Waiting != nil && one.State.Waiting.Reason == crashLoop {
			one.RestartCount++
			one.LastTerminationState.Terminated.StartedAt = now
			one.LastTerminationState.Terminated.FinishedAt = now
		}
	}
	return pod
}

// podIP makes an address up that stays the same and that hardly any other pod has.
func podIP(pod *core.Pod) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(pod.UID))
	sum := hash.Sum(nil)
	return fmt.Sprintf("10.%d.%d.%d", sum[0], sum[1], sum[2])
}

func setPodCondition(status *core.PodStatus, kind core.PodConditionType, value core.ConditionStatus, now meta.Time) {
	condition := core.PodCondition{Type: kind, Status: value, LastTransitionTime: now}
	at := slices.IndexFunc(status.Conditions, func(one core.PodCondition) bool { return one.Type == kind })
	if at < 0 {
		status.Conditions = append(status.Conditions, condition)
		return
	}
	status.Conditions[at] = condition
}
