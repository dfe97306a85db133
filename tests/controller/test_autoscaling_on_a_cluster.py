"""Autoscaling on a real control plane, with its own HorizontalPodAutoscaler controller.

Custom resources of the group of metrics-server take its place.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from controller.reconcilers.resources import AUTOSCALER, DEPLOYMENT, POD
from controller.reconcilers.webapp import WEBAPP
from controller.runtime.status import of_type
from kube.client import Client
from kube.resource import JsonObject, Resource
from tests.controller.conftest import Start
from tests.controller.observer import Observer, observing
from tests.controller.test_webapp_on_a_cluster import writes
from tests.controller.webapps import webapp
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.controlplane

WEBAPPS = WEBAPP.resource
METRICS = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics")
ANYTHING: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CRD: JsonObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "pods.metrics.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
    },
    "spec": {
        "group": "metrics.k8s.io",
        "scope": "Namespaced",
        "names": {"plural": "pods", "kind": "PodMetrics"},
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": ANYTHING},
            }
        ],
    },
}


@pytest.fixture
def metrics(control_plane: ControlPlane) -> Iterator[None]:
    """Serve metrics.k8s.io while a test lasts."""
    yield
    control_plane.kubectl("delete", "--ignore-not-found", "crd/pods.metrics.k8s.io")


def reason_is(reason: str, object: JsonObject) -> bool:
    """Whether the condition Autoscaled of a WebApp has a reason."""
    found = of_type("Autoscaled", object.get("status", {}).get("conditions") or ())
    return found is not None and found["reason"] == reason


def usage(pod: JsonObject, millicores: int) -> JsonObject:
    """The usage of a pod that is measured now."""
    about = pod["metadata"]
    return {
        "metadata": {key: about[key] for key in ("name", "namespace", "labels")},
        "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "window": "0s",
        "containers": [{"name": "webapp", "usage": {"cpu": f"{millicores}m", "memory": "9Mi"}}],
    }


async def test_an_autoscaler_scales_and_is_not_fought(
    control_plane: ControlPlane,
    client: Client,
    namespace: str,
    controller: Start,
    metrics: None,
) -> None:
    """Without metrics, the condition has the remedy; with a load, the pods become four, without a write by the controller."""
    kinds = [WEBAPPS, DEPLOYMENT, AUTOSCALER, POD]
    async with observing(client, namespace, kinds) as observer, controller() as agent:
        await client.create(WEBAPPS, webapp(namespace, autoscaling={"min": 2, "max": 4}))
        found = await observer.until(
            WEBAPPS, "shop", lambda each: reason_is("FailedGetResourceMetric", each)
        )
        told = of_type("Autoscaled", found["status"]["conditions"])
        assert told is not None
        assert told["message"].endswith("Install metrics-server")
        await scaled_to(observer, 2)

        control_plane.kubectl("create", "-f", "-", input=json.dumps(CRD))
        control_plane.kubectl("wait", "--for=condition=Established", "crd/pods.metrics.k8s.io")
        pods = [pod async for pod in client.list(POD, namespace)]
        since = control_plane.audit_mark()
        for pod in pods:
            await client.create(METRICS, usage(pod, 400))
        await scaled_to(observer, 4)
        active = await observer.until(
            WEBAPPS, "shop", lambda each: reason_is("ScalingActive", each)
        )
        told = of_type("Autoscaled", active["status"]["conditions"])
        assert told is not None
        assert told["message"] == "2 to 4 replicas at 80% of the requested cpu"
        ours = [
            write
            for write in writes(control_plane, since, agent)
            if "leases" not in write and "events" not in write
        ]
        assert set(ours) == {"patch webapps/status"}

        await client.patch(WEBAPPS, "shop", {"spec": {"port": 81}}, namespace)
        changed = await observer.until(
            DEPLOYMENT,
            "shop",
            lambda each: (
                each["metadata"]["generation"] == each["status"].get("observedGeneration")
                and "81" in str(each["spec"]["template"])
            ),
        )
        assert changed["spec"]["replicas"] == 4


async def scaled_to(observer: Observer, replicas: int) -> None:
    """Wait until the WebApp is Running with this many pods."""
    await observer.until(
        WEBAPPS,
        "shop",
        lambda each: (
            each.get("status", {}).get("phase") == "Running"
            and each["status"]["readyReplicas"] == replicas
        ),
    )
