package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const heartbeatEvery = 10 * time.Second

// hollowKubelet plays the kubelet of its nodes: it says that pods run, and runs nothing.
type hollowKubelet struct {
	client kubernetes.Interface
	nodes  []string
	pods   listers.PodLister
	queue  queue
}

func newHollowKubeletCommand() *cobra.Command {
	var kubeconfig string
	var nodes []string
	command := &cobra.Command{
		Use:          "hollow-kubelet",
		Short:        "nodes that are Ready at once, pods that never start a container, volumes that hold nothing",
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
	command.Flags().StringSliceVar(&nodes, "node", []string{"node-1", "node-2", "node-3"}, "names of the nodes to play")
	return command
}

func runHollowKubelet(ctx context.Context, client kubernetes.Interface, nodes []string) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	kubelet := &hollowKubelet{client: client, nodes: nodes, pods: factory.Core().V1().Pods().Lister(), queue: newQueue()}
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
	provisioner, err := newHollowProvisioner(client, factory)
	if err != nil {
		return err
	}
	if err := provisioner.createClass(ctx); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go wait.UntilWithContext(ctx, kubelet.heartbeat, heartbeatEvery)
	go work(ctx, provisioner.queue, provisioner.sync)
	work(ctx, kubelet.queue, kubelet.sync)
	return nil
}

// sync moves one pod on: a deleted one goes, a new one starts, one that failed is started again when it is time.
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
	report := started
	if pod.Status.PodIP != "" {
		at := nextRestart(pod)
		if at.IsZero() {
			return nil
		}
		if wait := time.Until(at); wait > 0 {
			k.queue.AddAfter(name, wait)
			return nil
		}
		report = restarted
	}
	if err := k.lead(ctx, pod); err != nil {
		return err
	}
	_, err = pods.UpdateStatus(ctx, report(pod), meta.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// lead plays Patroni: the first instance of a database is its leader.
func (k *hollowKubelet) lead(ctx context.Context, pod *core.Pod) error {
	name, isFirst := strings.CutSuffix(pod.Name, "-0")
	hasPatroni := slices.ContainsFunc(pod.Spec.Containers, func(container core.Container) bool {
		return slices.ContainsFunc(container.Ports, func(port core.ContainerPort) bool { return port.Name == "patroni" })
	})
	if !isFirst || !hasPatroni {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata": {"annotations": {"leader": %q}}}`, pod.Name)
	_, err := k.client.CoreV1().Endpoints(pod.Namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), meta.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
