package main

import (
	"context"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
)

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
