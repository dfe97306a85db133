"""Platforms and stacks for tests, and their children, ready or not."""

from collections.abc import Iterable, Mapping
from typing import Any

from controller.runtime.plan import Apply, Delete, Observed, Plan
from kube.resource import JsonObject

IMAGES: Mapping[str, Any] = {
    "backend": {"image": "shop/backend:v2"},
    "frontend": {"image": "shop/frontend:v2"},
}


def stored(kind: str, api_version: str, spec: JsonObject, **more: Any) -> JsonObject:
    """A stored object named `shop`."""
    metadata = {"name": "shop", "namespace": "eu", "uid": "1", "generation": 1}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec, **more}


def platform(**spec: Any) -> JsonObject:
    """An EcommercePlatform."""
    return stored("EcommercePlatform", "platform.example.com/v1", {**IMAGES, **spec})


def stack(**spec: Any) -> JsonObject:
    """An AppStack."""
    return stored("AppStack", "app.example.com/v1", spec)


def made(plan: Plan, kind: str | None = None) -> dict[tuple[str, str], JsonObject]:
    """The objects that a plan applies, by kind and name."""
    objects = [
        write.object for step in plan.steps for write in step.writes if isinstance(write, Apply)
    ]
    return {
        (object["kind"], object["metadata"]["name"]): object
        for object in objects
        if kind in (None, object["kind"])
    }


def deleted(plan: Plan) -> list[str]:
    """The objects that a plan deletes, such as `deployments/shop-cache`."""
    references = [
        write.reference for step in plan.steps for write in step.writes if isinstance(write, Delete)
    ]
    return [f"{each.resource.plural}/{each.name}" for each in references]


def ready(object: JsonObject) -> JsonObject:
    """A stored child that is ready."""
    status: JsonObject = {}
    match object["kind"]:
        case "Deployment" | "StatefulSet":
            replicas = object["spec"]["replicas"]
            status = {
                "readyReplicas": replicas,
                "updatedReplicas": replicas,
                "observedGeneration": 1,
            }
        case "PostgreSQL":
            condition = {"type": "Ready", "status": "True", "reason": "AllReady", "message": ""}
            condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
            status = {"observedGeneration": 1, "conditions": [condition]}
    metadata = {**object["metadata"], "uid": object["metadata"]["name"], "generation": 1}
    return {**object, "metadata": metadata, "status": status}


def unready(object: JsonObject, **status: Any) -> JsonObject:
    """A stored child that is not ready yet."""
    return ready(object) | {"status": status}


def given(objects: Iterable[JsonObject], **more: Any) -> Observed:
    """The observed state: these children, all ready."""
    return Observed(children=[ready(each) for each in objects], **more)


def container(objects: Mapping[tuple[str, str], JsonObject], name: str) -> JsonObject:
    """The only container of a Deployment or StatefulSet."""
    (found,) = (
        each
        for (kind, its), each in objects.items()
        if its == name and kind in ("Deployment", "StatefulSet")
    )
    (container,) = found["spec"]["template"]["spec"]["containers"]
    return dict(container)
