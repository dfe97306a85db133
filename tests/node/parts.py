"""Configuration files of containerd, kubelet, kube-proxy and CoreDNS."""

import json
from pathlib import Path

import yaml

from tests.node.programs import CNI
from tests.node.slots import Slot

NODE = "node-1"
PODS = "10.244.0.0/24"
DNS = "10.96.0.10"
PAUSE = "gatewright.test/pause:1"
# overlayfs is the only snapshotter. Root without CAP_SYS_RESOURCE, as in some virtual machines, may not lower
# oom_score_adj, so it is never lowered.
CONTAINERD = """\
version = 2
root = "{directory}/containerd"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni}"
    conf_dir = "{directory}/cni"
"""
COREFILE = """\
.:53 {{
    bind {address}
    errors
    ready {address}:8181
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {kubeconfig}
    }}
    cache 30
}}
"""


def containerd(slot: Slot) -> Path:
    """Write containerd's configuration and that of the pods' network."""
    address_management = {
        "type": "host-local",
        "ranges": [[{"subnet": PODS}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    plugins = [
        {"type": "ptp", "ipMasq": False, "ipam": address_management},
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ]
    network = {"cniVersion": "1.0.0", "name": "pods", "plugins": plugins}
    _written(slot.directory / "cni" / "10-pods.conflist", json.dumps(network))
    content = CONTAINERD.format(directory=slot.directory, pause=PAUSE, cni=CNI)
    return _written(slot.directory / "containerd.toml", content)


def kubelet(slot: Slot) -> Path:
    """Write the kubelet's configuration: only the node's own machine reaches it."""
    resolver = _written(slot.directory / "resolv.conf", f"nameserver {slot.address}\n")
    content = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "address": slot.address,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{slot.name}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "clusterDNS": [DNS],
        "clusterDomain": "cluster.local",
        "resolvConf": str(resolver),
        "enforceNodeAllocatable": [],
        "evictionHard": {
            "imagefs.available": "1%",
            "nodefs.available": "1%",
            "memory.available": "100Mi",
        },
        # images belong to the cache, so none is removed
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "volumePluginDir": str(slot.directory / "kubelet" / "plugins"),
        "nodeStatusUpdateFrequency": "5s",
    }
    return _written(slot.directory / "kubelet.yaml", yaml.safe_dump(content))


def kube_proxy(slot: Slot, kubeconfig: Path) -> Path:
    """Write kube-proxy's configuration."""
    content = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "clusterCIDR": PODS,
        "hostnameOverride": NODE,
        "bindAddress": slot.address,
        "healthzBindAddress": f"{slot.address}:10256",
        "metricsBindAddress": f"{slot.address}:10249",
        "conntrack": {"maxPerCore": 0, "min": 0},
    }
    return _written(slot.directory / "kube-proxy.yaml", yaml.safe_dump(content))


def coredns(slot: Slot, kubeconfig: Path) -> Path:
    """Write CoreDNS's configuration: it knows the cluster's names and no others."""
    content = COREFILE.format(address=slot.address, kubeconfig=kubeconfig)
    return _written(slot.directory / "Corefile", content)


def _written(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path
