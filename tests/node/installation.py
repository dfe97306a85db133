"""Gatewright in pods on the node: its verdicts, its pods, and the answer of each pod."""

import json
import re
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

from tests.controlplane.plane import ControlPlane
from tests.e2e import manifests
from tests.e2e.conftest import Cluster
from tests.node.node import Node
from tests.node.release import NAME, NAMESPACE, Release
from tests.waiting import until

PRODUCTION = "policies.preset=production"
ALL = "app.kubernetes.io/name=gatewright"
WEBHOOK = "app.kubernetes.io/component=webhook"
CONTROLLER = "app.kubernetes.io/component=controller-manager"
# A busy machine takes several times as long as an idle one.
PATIENCE = 120.0
BAD = manifests.deployment("bad", replicas=11)
GOOD = manifests.deployment("good")
TOO_MANY = "spec.replicas: 11; production workloads cannot exceed 10 replicas."

# Kinds of Gatewright's objects in its namespace, except pods, and in the cluster.
OWN = (
    "services,deployments,replicasets,jobs,configmaps,secrets,leases,serviceaccounts,roles,"
    "rolebindings,poddisruptionbudgets"
)
WIDE = (
    "clusterroles,clusterrolebindings,validatingwebhookconfigurations,"
    "mutatingwebhookconfigurations,clusteradmissionpolicies,priorityclasses"
)
OF_EVERY_NAMESPACE = {"configmap/kube-root-ca.crt", "serviceaccount/default"}


class Installation:
    """The release of the chart, and the namespace `production` under its policies."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.release = Release(node)

    @property
    def plane(self) -> ControlPlane:
        """The control plane."""
        return self.node.plane

    @cached_property
    def cluster(self) -> Cluster:
        """The cluster, for kubectl."""
        return Cluster(self.plane)

    def have(self) -> None:
        """Ensure that Gatewright is installed with the policy set production in force."""
        self.namespace("production")
        if self.release.status() != "deployed":
            self.release.install(PRODUCTION)
        self.until("a bad object is denied", self.denies)

    def remove(self) -> None:
        """Remove everything of Gatewright except its CustomResourceDefinitions."""
        if self.release.status() is not None:
            self.release.uninstall()

    def namespace(self, name: str, **labels: str) -> None:
        """Ensure that a namespace exists."""
        if not self.cluster.api.found(f"/api/v1/namespaces/{name}"):
            self.plane.create_namespace(name)
            if labels:
                pairs = [f"{key}={value}" for key, value in labels.items()]
                self.cluster.kubectl("label", "namespace", name, *pairs)

    def denies(self) -> bool:
        """Whether a Deployment that breaks a rule of production is denied."""
        code, answer = self.create(BAD)
        return code == 403 and TOO_MANY in answer

    def create(self, deployment: dict[str, Any]) -> tuple[int, str]:
        """Create a Deployment in production as a dry run, and return status and answer."""
        path = "/apis/apps/v1/namespaces/production/deployments?dryRun=All"
        code, answer = self.cluster.api.request("POST", path, deployment)
        return code, answer.decode()

    def pods(self, selector: str) -> list[dict[str, Any]]:
        """Return the pods of a component that are not being deleted."""
        return [
            pod
            for pod in self.plane.resources.find("pods", NAMESPACE, selector)
            if "deletionTimestamp" not in pod["metadata"]
        ]

    def wait_for_old_pods(self) -> None:
        """Wait until the webhook's pods that a rollout replaced have ended."""
        both = lambda: len(self.plane.resources.find("pods", NAMESPACE, WEBHOOK)) == 2  # noqa: E731
        self.until("the old pods are gone", both)

    def verdicts(self) -> list[bool]:
        """Send the bad Deployment to each webhook pod directly, and return which pods allow it."""
        return [self._allows(pod["metadata"]["name"]) for pod in self.pods(WEBHOOK)]

    def metrics(self, pod: str) -> str:
        """Return a pod's metrics."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/http:{pod}:8080/proxy/metrics"
        return self.cluster.api.request("GET", path)[1].decode()

    def logged(self, selector: str, level: str) -> list[dict[str, Any]]:
        """Return the log lines of a component's pods at a level."""
        logs = self.cluster.kubectl("logs", "-n", NAMESPACE, "-l", selector, "--tail=-1")
        lines = [json.loads(line) for line in logs.splitlines() if line.startswith("{")]
        return [line for line in lines if line["level"] == level]

    def kill(self, pod: dict[str, Any]) -> None:
        """End a pod's process with SIGKILL."""
        container = pod["status"]["containerStatuses"][0]["containerID"].removeprefix(
            "containerd://"
        )
        tasks = self.node.machine.run("ctr", "--namespace", "k8s.io", "tasks", "list")
        pid = re.search(rf"^{container}\s+(\d+)", tasks, re.MULTILINE)[1]
        self.node.machine.run("kill", "-9", pid)

    def leader(self) -> str:
        """Return the name of the controller's pod that leads."""
        lease = self.cluster.get(f"lease/{NAME}-controller-lock", NAMESPACE)
        return str(lease["spec"].get("holderIdentity") or "")

    def until(self, what: str, sign: Callable[[], bool], within: float = PATIENCE) -> float:
        """Wait for a condition, and return the seconds that it took."""
        began = time.monotonic()
        until(sign, within=within, every=0.1, problem=lambda: what)
        return time.monotonic() - began

    def left(self) -> list[str]:
        """Return all objects except CustomResourceDefinitions, the namespace, and terminating pods."""
        kubectl = self.cluster.kubectl
        found = kubectl("get", OWN, "-n", NAMESPACE, "-o", "name", "--ignore-not-found").split()
        wide = kubectl("get", WIDE, "-o", "name").split()
        found += [each for each in wide if "gatewright" in each]
        found += [pod["metadata"]["name"] for pod in self.pods(ALL)]
        return sorted(set(found) - OF_EVERY_NAMESPACE)

    def _allows(self, pod: str) -> bool:
        request = {
            "uid": "1",
            "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
            "namespace": "production",
            "name": "bad",
            "operation": "CREATE",
            "userInfo": {"username": "somebody"},
            "object": BAD,
            "dryRun": True,
        }
        review = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": request,
        }
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/https:{pod}:9443/proxy/validate"
        code, answer = self.cluster.api.request("POST", path, review)
        assert code == 200, answer
        return bool(json.loads(answer)["response"]["allowed"])
