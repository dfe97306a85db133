"""Containers of Gatewright's own kinds are denied as the API server denies them in a Deployment."""

from datetime import UTC, datetime
from typing import Any

import pytest

from config.settings import Settings
from gatewright.processes.planners import planners_of
from tests.controlplane.plane import ControlPlane
from webhook.engine import NAMESPACE_LABELS, Engine
from webhook.harness.bases import smallest
from webhook.harness.reviews import Admission
from webhook.harness.trial import ask
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import load

pytestmark = pytest.mark.controlplane

GPU, HUGE = "example.com/gpu", "hugepages-2Mi"
BOTH: list[dict[str, Any]] = [  # denied by both, or allowed
    {
        "resources": {
            "limits": {
                "cpu": "1",
                GPU: 1,
                "kubernetes.io/gpu": "1500m",
                "ephemeral-storage": "1500m",
            }
        }
    },
    {"resources": {"requests": {"cpu": 2}, "limits": {"cpu": "1"}}},
    {"resources": {"requests": {"cpu": "-1"}}},
    {"resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "0"}}},
    {"resources": {"requests": {GPU: 1}}},
    {"resources": {"requests": {GPU: 1}, "limits": {GPU: 2}}},
    {"resources": {"requests": {GPU: 1}, "limits": {GPU: "1000m"}}},
    {"resources": {"limits": {GPU: "1500m"}}},
    {"resources": {"limits": {"gpu": 1}}},
    {"resources": {"limits": {"storage": "1Gi"}}},
    {"resources": {"limits": {HUGE: "4Mi", "cpu": 1}}},
    {"resources": {"requests": {HUGE: "4Mi", "cpu": 1}}},
    {"resources": {"requests": {"kubernetes.io/gpu": 1}, "limits": {"kubernetes.io/gpu": 2}}},
    {"securityContext": {"privileged": True}},
    {"securityContext": {"privileged": True, "allowPrivilegeEscalation": False}},
    {
        "securityContext": {
            "capabilities": {"add": ["CAP_SYS_ADMIN"]},
            "allowPrivilegeEscalation": False,
        }
    },
    {
        "securityContext": {
            "capabilities": {"add": ["SYS_ADMIN"]},
            "allowPrivilegeEscalation": False,
        }
    },
    {"securityContext": {"runAsUser": 0, "runAsNonRoot": True}},
    {"securityContext": {"runAsUser": -1}},
    {"securityContext": {"runAsUser": 2147483647}},
    {"securityContext": {"runAsGroup": 2147483648}},
    {"securityContext": {"seccompProfile": {"type": "Localhost"}}},
    {"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "a.json"}}},
    {"securityContext": {"seccompProfile": {"type": "RuntimeDefault", "localhostProfile": "x"}}},
    {"securityContext": {"appArmorProfile": {"type": "Localhost"}}},
    {"securityContext": {"appArmorProfile": {"type": "Localhost", "localhostProfile": "x"}}},
    {"securityContext": {"appArmorProfile": {"type": "RuntimeDefault", "localhostProfile": "x"}}},
    {"env": [{"name": "A", "value": "1"}, {"name": "a b"}, {"name": "1"}]},
    {"env": [{"name": ""}]},
    {"env": [{"name": "A=B"}]},
    {"env": [{"name": "\u00e4"}]},
    {"env": [{"name": "a\tb"}]},
    {
        "env": [
            {"name": "A", "value": "1", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}
        ]
    },
    {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}]},
    {"env": [{"name": "A", "valueFrom": {}}]},
    {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "a"}}}]},
    {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"key": "b"}}}]},
    {"resources": {"limits": {HUGE: "4Mi"}}},
    {"resources": {"limits": {HUGE: "3Mi", "cpu": 1}}},
    {"resources": {"limits": {"requests.example.com/gpu": 1}}},
    {"resources": {"claims": [{"name": "gpu"}]}},
    {"securityContext": {"windowsOptions": {"hostProcess": True}}},
]
STRICTER: list[dict[str, Any]] = [
    {"image": " nginx"},  # the API server denies the pods
    {"image": "nginx\n"},
    {"image": "a b"},  # no kubelet can parse it
]
LOOSER: list[dict[str, Any]] = [  # the condition Ready has the API server's message
    {"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "../x"}}},
    {"securityContext": {"procMount": "Unmasked"}},
    {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "A b", "key": "b"}}}]},
]


def test_the_api_server_agrees(control_plane: ControlPlane, namespace: str) -> None:
    """It denies the same containers in a Deployment, with a few listed exceptions."""
    api = control_plane.api
    path, engine = (
        f"/apis/apps/v1/namespaces/{namespace}/deployments?dryRun=All",
        Engine(load([], catalogue()), planners_of(Settings(), namespace)),
    )

    looked_up = {NAMESPACE_LABELS: {}, "now": datetime.now(UTC), "served_apis": ()}

    def is_taken(container: dict[str, Any]) -> bool:
        deployment = smallest("Deployment")
        (app,) = deployment["spec"]["template"]["spec"]["containers"]
        app |= container
        code, answer = api.request("POST", path, deployment | {"metadata": {"name": "app"}})
        assert code in {201, 422}, answer
        return bool(code == 201)

    def is_allowed(container: dict[str, Any]) -> bool:
        webapp = smallest("WebApp")
        webapp["spec"] |= container
        return ask(engine, Admission(object=webapp, namespace=namespace), looked_up).allowed

    everything = [*BOTH, *STRICTER, *LOOSER]
    assert [each for each in everything if is_taken(each) and not is_allowed(each)] == STRICTER
    assert [each for each in everything if not is_taken(each) and is_allowed(each)] == LOOSER
