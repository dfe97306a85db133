"""The plan of a Widget: tables of (spec, observed) -> plan."""

from datetime import UTC, datetime
from typing import Any

import pytest

from config.api.widget import Widget
from controller.reconcilers.resources import DEPLOYMENT
from controller.reconcilers.widget import WIDGET
from controller.runtime.plan import Apply, Observed, Plan
from gatewright.testing import ApiServer, reconcile
from kube.resource import JsonObject

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def planned(observed: Observed | None = None, **labels: str) -> Plan:
    """The plan of a Widget of two replicas."""
    metadata = {"name": "gears", "namespace": "default", "labels": labels}
    return WIDGET.plan(
        Widget.model_validate({"metadata": metadata, "spec": {"replicas": 2}}),
        observed or Observed(),
        NOW,
    )


def made(plan: Plan) -> JsonObject:
    """The Deployment that a plan applies."""
    (write,) = plan.steps[0].writes
    assert isinstance(write, Apply)
    return write.object


def deployment(**status: Any) -> JsonObject:
    """The observed Deployment of the Widget."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "gears"},
        "spec": {"replicas": 2},
        "status": status,
    }


def test_a_deployment_of_pause_containers() -> None:
    """The complete object, which meets the restricted Pod Security Standard."""
    assert made(planned()) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "gears", "namespace": "default", "labels": {"app": "gears"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "gears"}},
            "template": {
                "metadata": {"labels": {"app": "gears"}},
                "spec": {
                    "containers": [
                        {
                            "name": "pause",
                            "image": "registry.k8s.io/pause:3.10",
                            "resources": {
                                "requests": {"cpu": "10m", "memory": "16Mi"},
                                "limits": {"cpu": "10m", "memory": "16Mi"},
                            },
                            "securityContext": {
                                "runAsNonRoot": True,
                                "allowPrivilegeEscalation": False,
                                "readOnlyRootFilesystem": True,
                                "capabilities": {"drop": ["ALL"]},
                                "seccompProfile": {"type": "RuntimeDefault"},
                            },
                        }
                    ],
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": 65535,
                        "runAsGroup": 65535,
                        "fsGroup": 65535,
                        "fsGroupChangePolicy": "OnRootMismatch",
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                },
            },
        },
    }


def test_the_image_comes_from_the_registry_that_is_set() -> None:
    """The image follows the setting `registry`, like all images that the controller chooses."""
    pod = made(planned(Observed(settings={"registry": "registry.company.com"})))["spec"][
        "template"
    ]["spec"]
    assert pod["containers"][0]["image"] == "registry.company.com/pause:3.10"


def test_labels_are_handed_on() -> None:
    """The labels are on the Deployment and its pods, but not in the selector, which never changes."""
    object = made(planned(platform="store", team="shop"))
    assert object["metadata"]["labels"] == {"app": "gears", "platform": "store", "team": "shop"}
    assert object["spec"]["template"]["metadata"]["labels"] == {
        "app": "gears",
        "platform": "store",
        "team": "shop",
    }
    assert object["spec"]["selector"] == {"matchLabels": {"app": "gears"}}


@pytest.mark.parametrize(
    ("children", "available", "holds"),
    [
        ([], 0, False),
        ([deployment()], 0, False),
        ([deployment(availableReplicas=1)], 1, False),
        ([deployment(availableReplicas=2)], 2, True),
    ],
)
def test_it_is_ready_once_all_pods_are_available(
    children: list[JsonObject], available: int, holds: bool
) -> None:
    """The status follows the Deployment's."""
    plan = planned(Observed(children=children))
    status = plan.status.to_api()
    progress = {each["type"]: each["reason"] for each in status.pop("conditions")}
    assert progress == {
        "Available": "MinimumReplicasUnavailable",
        "Progressing": "RolledOut" if holds else "RollingOut",
    }
    assert status == {"availableReplicas": available, "selector": "app=gears"}
    assert plan.steps[0].ready is holds
    assert holds or plan.steps[0].note == f"{available} of 2 replicas are ready"


async def test_zero_replicas_are_ready(server: ApiServer) -> None:
    """Two writes make a Widget with 0 replicas ready; a second reconcile sends none."""
    server.create(
        WIDGET.resource,
        {"metadata": {"name": "gears", "namespace": "default"}, "spec": {"replicas": 0}},
    )
    await reconcile(WIDGET, server, "gears")
    await reconcile(WIDGET, server, "gears")
    stored = server.get(WIDGET.resource, "gears", "default")
    conditions = {each["type"]: each["status"] for each in stored["status"]["conditions"]}
    assert conditions == {"Available": "False", "Progressing": "True", "Ready": "True"}
    assert (server.get(DEPLOYMENT, "gears", "default"))["spec"]["replicas"] == 0
    assert server.writes == [
        "apply deployments default/gears",
        "apply widgets/status default/gears",
    ]
