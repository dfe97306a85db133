"""The reviews to send, each with the answer that every server must give."""

import copy
from dataclasses import dataclass
from typing import Any

from webhook.harness.reviews import Admission, review

# Policies selected by the namespace's name, and by a label that is looked up.
PRODUCTION, LABELLED = ("production", "shop")
RESOURCES = {
    "limits": {"cpu": "500m", "memory": "512Mi"},
    "requests": {"cpu": "100m", "memory": "128Mi"},
}
IMAGE = "registry.company.com/shop:1"
CONTAINERS = "spec.template.spec.containers"


@dataclass(frozen=True, slots=True)
class Body:
    """A review, its path, and its purpose."""

    name: str
    about: str
    path: str
    review: bytes
    object: dict[str, Any]
    violations: frozenset[tuple[str, str]] = frozenset()  # policy and field of each
    is_patched: bool = False
    listed: bool = True  # whether its violations are few enough to compare
    bar: float | None = None  # processor time, as a share of typed Go's


def _containers(count: int, variables: int) -> list[dict[str, Any]]:
    env = [{"name": f"VARIABLE_{number}", "value": "x" * 24} for number in range(variables)]
    return [
        {"name": f"app-{n}", "image": IMAGE, "env": env, "resources": RESOURCES}
        for n in range(count)
    ]


def _deployment(
    containers: list[dict[str, Any]], replicas: int = 3, namespace: str = PRODUCTION
) -> dict[str, Any]:
    labels = {"app": "shop"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "shop", "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }


def _bad() -> tuple[dict[str, Any], frozenset[tuple[str, str]]]:
    """Return a Deployment with three violations, and the violations."""
    object = _deployment(_containers(4, 24), replicas=11)
    containers = object["spec"]["template"]["spec"]["containers"]
    containers[0]["image"] = "nginx:1.21"
    del containers[3]["resources"]
    expected = {
        ("image-registries", f"{CONTAINERS}[name=app-0].image"),
        ("replica-limits", "spec.replicas"),
        ("resource-limits", f"{CONTAINERS}[name=app-3].resources.limits"),
    }
    return object, frozenset(expected)


def _owned(value: Any) -> Any:
    """Return `value` in the form of managedFields (FieldsV1)."""
    if isinstance(value, dict):
        return {f"f:{key}": _owned(each) for key, each in value.items()}
    if isinstance(value, list) and all(isinstance(each, dict) for each in value):
        return {f'k:{{"name":"{each["name"]}"}}': {".": {}} | _owned(each) for each in value}
    return {}


def _update() -> Admission:
    """Return an update of the image of an object as stored by the API server."""
    new = _deployment(_containers(4, 24))
    new["metadata"]["managedFields"] = [
        {
            "manager": "kubectl",
            "operation": "Update",
            "fieldsType": "FieldsV1",
            "fieldsV1": _owned(new),
        }
    ]
    old = copy.deepcopy(new)
    old["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.company.com/shop:0"
    return Admission(object=new, old_object=old, operation="UPDATE", namespace=PRODUCTION)


def _pod() -> dict[str, Any]:
    metadata = {"name": "shop", "namespace": PRODUCTION, "labels": {"app": "shop"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": _containers(2, 20)},
    }


def _of(name: str, about: str, path: str, object: dict[str, Any], **more: Any) -> Body:
    encoded = review(Admission(object=object, namespace=object["metadata"]["namespace"]))
    return Body(name, about, path, encoded, object, **more)


def _config_map() -> dict[str, Any]:
    data = {
        f"dashboard-{number}.json": f'{{"panels": ["{"x" * 980}"]}}\n' for number in range(1000)
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "shop", "namespace": PRODUCTION},
        "data": data,
    }


def _custom() -> dict[str, Any]:
    items = [
        {"name": f"item-{n}", "host": f"10.0.0.{n % 256}", "port": 8080, "ready": True}
        for n in range(15500)
    ]
    metadata = {"name": "shop", "namespace": PRODUCTION}
    return {
        "apiVersion": "shop.example/v1",
        "kind": "Inventory",
        "metadata": metadata,
        "spec": {"items": items},
    }


def _tiny() -> dict[str, Any]:
    return _deployment([{"name": f"c{number}", "image": "x"} for number in range(4300)])


def bodies() -> dict[str, Body]:
    """Return all bodies by name."""
    good, (bad, expected), update = _deployment(_containers(4, 24)), _bad(), _update()
    all_of_them = (
        _of("allow", "Deployment, 4 containers: allowed", "/validate", good, bar=0.65),
        _of(
            "deny",
            "the same with 3 violations: denied",
            "/validate",
            bad,
            violations=expected,
            bar=1.25,
        ),
        _of(
            "mutate",
            "the same: defaults on every container",
            "/mutate",
            good,
            is_patched=True,
            bar=1.1,
        ),
        Body(
            "update",
            "UPDATE with oldObject: allowed",
            "/validate",
            review(update),
            update.object or {},
        ),
        _of("pod", "Pod: allowed", "/validate", _pod()),
        _of(
            "config-map",
            "1 MB ConfigMap, which no policy judges",
            "/validate",
            _config_map(),
        ),
        _of(
            "custom",
            "1 MB custom resource, which no policy judges",
            "/validate",
            _custom(),
        ),
        _of("tiny", "4,300 containers: denied", "/validate", _tiny(), listed=False),
        _of(
            "tiny-mutate",
            "4,300 containers: defaults",
            "/mutate",
            _tiny(),
            is_patched=True,
            listed=False,
        ),
        _of(
            "labels",
            "allowed, namespace labels looked up",
            "/validate",
            _deployment(_containers(4, 24), 3, LABELLED),
        ),
    )
    return {body.name: body for body in all_of_them}
