"""Small clusters as objects: a webhook with its Service, pods, endpoints and certificate."""

import base64
import copy
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from certs import KeyPair, issue_ca, issue_serving
from config.documents import Document
from gatewright.tools.doctor import Hazard, diagnose
from gatewright.tools.doctor.state import MODELS, ClusterState

NOW = datetime(2026, 6, 1, tzinfo=UTC)
CA = issue_ca("authority", NOW - timedelta(days=1))
LABELS = {"app": "guard"}


def encoded(pem: bytes) -> str:
    """Return PEM in base64, as in the API."""
    return base64.b64encode(pem).decode()


def serving_pair(name: str = "guard.guard.svc", ca: KeyPair = CA) -> KeyPair:
    """Return a certificate for a server name."""
    return issue_serving(ca, [name], [], NOW)


def webhook(**changes: Any) -> dict[str, Any]:
    """Return a webhook without findings: for pods in the namespace shop."""
    return {
        "name": "pods.guard.example.com",
        "clientConfig": {
            "service": {"namespace": "guard", "name": "guard"},
            "caBundle": encoded(CA.certificate),
        },
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods", "pods/ephemeralcontainers", "pods/resize"],
            },
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["UPDATE"],
                "resources": ["pods/ephemeralcontainers", "pods/resize"],
            },
        ],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    } | changes


def configuration(
    *webhooks: dict[str, Any], name: str = "guard", sort: str = "Validating"
) -> dict[str, Any]:
    """Return a webhook configuration."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{sort}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": list(webhooks),
    }


def backend(name: str = "guard", replicas: int = 2, ready: int = 2) -> list[dict[str, Any]]:
    """Return a namespace with the Service, pods, endpoints, certificate and budget of a webhook."""
    within = {"namespace": name, "name": name}
    labels = {"app": name}
    pair = serving_pair(f"{name}.{name}.svc")
    volume = {"name": "tls", "secret": {"secretName": name}}
    template = {"metadata": {"labels": labels}, "spec": {"volumes": [volume]}}
    port = {"name": "https", "port": 9443}
    endpoints = [{"addresses": [f"10.0.0.{n}"], "nodeName": f"node-{n}"} for n in range(ready)]
    return [
        namespace(name),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": within,
            "spec": {"selector": labels, "ports": [{"name": "https", "port": 443}]},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": within,
            "spec": {"replicas": replicas, "template": template},
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": within | {"labels": {"kubernetes.io/service-name": name}},
            "ports": [port],
            "endpoints": endpoints,
        },
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": within,
            "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": within,
            "data": {"tls.crt": encoded(pair.certificate)},
        },
    ]


def namespace(name: str) -> dict[str, Any]:
    """Return a namespace."""
    labels = {"kubernetes.io/metadata.name": name}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def changed(objects: Iterable[dict[str, Any]], kind: str, spec: dict[str, Any]) -> list[Any]:
    """Return copies of objects in which those of a kind have other top-level fields."""
    return [copy.deepcopy(each) | (spec if each["kind"] == kind else {}) for each in objects]


def without(objects: Iterable[dict[str, Any]], kind: str) -> list[Any]:
    """Return the objects of all other kinds."""
    return [each for each in objects if each["kind"] != kind]


def state_of(objects: Sequence[dict[str, Any]]) -> ClusterState:
    """Return the state of a cluster with only these objects."""
    state = ClusterState(frozenset(MODELS))
    assert not state.read(map(Document.of_object, objects))
    return state


def findings(*objects: dict[str, Any], served: dict[str, bytes] | None = None) -> list[Hazard]:
    """Return doctor's findings in a cluster with only these objects."""
    return diagnose(state_of(objects), NOW, served)


def found(*objects: dict[str, Any]) -> list[tuple[str, str]]:
    """Return level and check of each finding."""
    return [(each.level, each.check) for each in findings(*objects)]
