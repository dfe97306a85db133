"""Objects of a cluster with one node: the DNS Service, and volumes on the node's disk."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.node.parts import DNS, NODE

VOLUMES = 40
Object = dict[str, Any]


def cluster_dns(address: str) -> Iterator[Object]:
    """Yield the Service kube-dns and its endpoint, a process on the node."""
    ports = [
        {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
    ]
    return outside_service("kube-dns", address, ports, clusterIP=DNS)


def outside_service(name: str, address: str, ports: list[Object], **more: str) -> Iterator[Object]:
    """Yield a Service of the namespace kube-system, and its endpoint, a process at the address."""
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {**more, "ports": ports},
    }
    yield {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": name,
            "namespace": "kube-system",
            "labels": {"kubernetes.io/service-name": name},
        },
        "addressType": "IPv4",
        "ports": ports,
        "endpoints": [{"addresses": [address]}],
    }


def volumes(directory: Path) -> Iterator[Object]:
    """Yield the default StorageClass and its volumes, which are directories of any requested size."""
    yield {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": "local",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    on_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}
    for number in range(VOLUMES):
        path = directory / str(number)
        path.mkdir(parents=True)
        yield {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"local-{number}"},
            "spec": {
                "capacity": {"storage": "1Ti"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "local",
                "persistentVolumeReclaimPolicy": "Retain",
                "local": {"path": str(path)},
                "nodeAffinity": {
                    "required": {"nodeSelectorTerms": [{"matchExpressions": [on_node]}]}
                },
            },
        }
