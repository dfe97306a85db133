package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
)

const heartbeatEvery = 10 * time.Second

// hollowKubelet plays the kubelet of its nodes: it says that pods run, and runs nothing.
type hollowKubelet struct {
	client kubernetes.Interface
	nodes  []string
	pods   listers.PodLister
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

func newHollowKubeletCommand() *cobra.Command {
	var kubeconfig string
	var nodes []string
	command := &cobra.Command{
		Use:          "hollow-kubelet",
		Short:        "nodes that are Ready at once and pods that never start a container",
		SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error {
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return err
			}
			config.QPS = -1
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				return err
			}
			return runHollowKubelet(genericapiserver.SetupSignalContext(), client, nodes)
		},
	}
	command.Flags().StringVar(&kubeconfig, "kubeconfig", "", "how to reach the API server")
	command.Flags().StringSliceVar(&nodes, "node", []string{"node-1"}, "names of the nodes to play")
	return command
}

func runHollowKubelet(ctx context.Context, client kubernetes.Interface, nodes []string) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	kubelet := &hollowKubelet{
		client: client,
		nodes:  nodes,
		pods:   factory.Core().V1().Pods().Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](10*time.Millisecond, time.Second)),
	}
	enqueue := func(object any) {
		if pod, ok := object.(*core.Pod); ok && slices.Contains(nodes, pod.Spec.NodeName) {
			kubelet.queue.Add(cache.MetaObjectToName(pod))
		}
	}
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go func() {
		<-ctx.Done()
		kubelet.queue.ShutDown()
	}()
	go wait.UntilWithContext(ctx, kubelet.heartbeat, heartbeatEvery)
	for kubelet.next(ctx) {
	}
	return nil
}

func (k *hollowKubelet) next(ctx context.Context) bool {
	name, shutdown := k.queue.Get()
	if shutdown {
		return false
	}
	defer k.queue.Done(name)
	if err := k.sync(ctx, name); err != nil {
		klog.ErrorS(err, "pod not synced, trying again", "pod", name)
		k.queue.AddRateLimited(name)
		return true
	}
	k.queue.Forget(name)
	return true
}

// sync moves one pod on: a deleted one goes, a new one runs (or has succeeded, when it is not to be restarted).
func (k *hollowKubelet) sync(ctx context.Context, name cache.ObjectName) error {
	pod, err := k.pods.Pods(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	pods := k.client.CoreV1().Pods(pod.Namespace)
	if pod.DeletionTimestamp != nil {
		if *pod.DeletionGracePeriodSeconds == 0 {
			return nil // it waits for its finalizers
		}
		err = pods.Delete(ctx, pod.Name, meta.DeleteOptions{
			GracePeriodSeconds: new(int64), Preconditions: meta.NewUIDPreconditions(string(pod.UID)),
		})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		return err
	}
	if pod.Status.PodIP != "" {
		return nil
	}
	_, err = pods.UpdateStatus(ctx, started(pod), meta.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

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
		status.InitContainerStatuses = append(status.InitContainerStatuses, containerStatus(container, !sidecar || ends, now))
	}
	status.ContainerStatuses = nil
	pulled := true
	for _, container := range pod.Spec.Containers {
		one := containerStatus(container, ends, now)
		pulled = pulled && one.State.Waiting == nil
		status.ContainerStatuses = append(status.ContainerStatuses, one)
	}
	ready := core.ConditionFalse
	switch {
	case !pulled:
		status.Phase = core.PodPending
	case ends:
		status.Phase = core.PodSucceeded
	default:
		status.Phase, ready = core.PodRunning, core.ConditionTrue
	}
	status.PodIP = podIP(pod)
	status.PodIPs = []core.PodIP{{IP: status.PodIP}}
	setPodCondition(status, core.PodInitialized, core.ConditionTrue, now)
	setPodCondition(status, core.ContainersReady, ready, now)
	setPodCondition(status, core.PodReady, ready, now)
	return pod
}

// containerStatus says that a container runs or has ended; an image of a registry that cannot exist is never pulled.
func containerStatus(container core.Container, ended bool, now meta.Time) core.ContainerStatus {
	host, _, _ := strings.Cut(container.Image, "/")
	pulled := !strings.HasSuffix(host, ".invalid")
	running := pulled && !ended
	status := core.ContainerStatus{Name: container.Name, Image: container.Image, Started: &running, Ready: running}
	switch {
	case !pulled:
		status.State.Waiting = &core.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such host: " + host}
	case ended:
		status.State.Terminated = &core.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now}
	default:
		status.State.Running = &core.ContainerStateRunning{StartedAt: now}
	}
	return status
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

func (k *hollowKubelet) heartbeat(ctx context.Context) {
	for _, name := range k.nodes {
		if err := k.reportNode(ctx, name); err != nil {
			klog.ErrorS(err, "node not reported, trying again", "node", name)
		}
	}
}

func (k *hollowKubelet) reportNode(ctx context.Context, name string) error {
	nodes := k.client.CoreV1().Nodes()
	found, err := nodes.Get(ctx, name, meta.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = nodes.Create(ctx, &core.Node{
			ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{
				core.LabelHostname: name, core.LabelOSStable: "linux", core.LabelArchStable: "amd64",
			}},
			Status: nodeStatus(name),
		}, meta.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	found = found.DeepCopy()
	found.Status = nodeStatus(name)
	_, err = nodes.UpdateStatus(ctx, found, meta.UpdateOptions{})
	return err
}

func nodeStatus(name string) core.NodeStatus {
	room := core.ResourceList{
		core.ResourceCPU:              resource.MustParse("10k"),
		core.ResourceMemory:           resource.MustParse("100Ti"),
		core.ResourceEphemeralStorage: resource.MustParse("100Ti"),
		core.ResourcePods:             resource.MustParse("100k"),
	}
	now := meta.Now()
	return core.NodeStatus{
		Capacity:    room,
		Allocatable: room,
		Addresses:   []core.NodeAddress{{Type: core.NodeHostName, Address: name}, {Type: core.NodeInternalIP, Address: "127.0.0.1"}},
		NodeInfo:    core.NodeSystemInfo{KubeletVersion: version.Get().GitVersion, OperatingSystem: "linux", Architecture: "amd64"},
		Conditions: []core.NodeCondition{{
			Type: core.NodeReady, Status: core.ConditionTrue, Reason: "KubeletReady",
			LastHeartbeatTime: now, LastTransitionTime: now,
		}},
	}
}
