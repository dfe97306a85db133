"""The objects for the corpus: workloads, and a custom resource with arbitrary JSON."""

from typing import Any

from kube.resource import JsonObject

DEFINITION: JsonObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.cel.gatewright.io"},
    "spec": {
        "group": "cel.gatewright.io",
        "scope": "Namespaced",
        "names": {"kind": "Thing", "plural": "things"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                        },
                    }
                },
            }
        ],
    },
}

SPECS: list[JsonObject] = [
    {
        "i": 3, "f": 1.5, "s": "text", "b": True, "n": None,
        "l": ["a", "b", "c"], "m": {"a": 1, "b": 2}, "numbers": [1, 2, 3],
    },
    {
        "i": 0, "f": 0.25, "s": "", "b": False,
        "l": [], "m": {}, "numbers": [],
    },
    {
        "i": -7, "f": -3.5, "s": "Tést ünïcode", "b": True, "n": 0,
        "l": ["c", "a", "b", "a"], "m": {"a": {"b": {"c": 1}}}, "numbers": [3, 1, 2, 2],
    },
    {
        "i": 9223372036854775807, "f": 1.25e-5, "s": "1.2.3", "b": False, "n": {"a": None},
        "l": [1, "a", None, True], "m": {"1": "x", "a": [1, 2]}, "numbers": [1.5, 2.5],
    },
    {
        "i": "3", "f": "1.5", "s": 3, "b": "true", "n": [],
        "l": {"a": 1}, "m": ["a"], "numbers": "123",
    },
    {"i": None, "f": None, "s": None, "b": None, "l": None, "m": None, "numbers": None},
    {},
    {"i": 1.75, "f": 3, "s": "10Gi", "b": 1, "n": "x", "l": [["a"], ["b"]], "m": {"a": 1.5}, "numbers": [1, 2.5, 3]},
    {"i": 42, "f": 2.718281828, "s": "1h30m", "b": True, "l": ["x"], "m": {"b": 2, "c": "3"}, "numbers": [10]},
    {"i": -1, "f": 123456789.125, "s": "10.0.0.1", "b": False, "l": ["b", "a"], "m": {"a": 1}, "numbers": [2, 1]},
    {"i": 7, "f": 1e-9, "s": "2026-01-01T00:00:00Z", "l": ["é", "e", "z"], "m": {"": ""}, "numbers": [-1, 0]},
    {"i": 5, "f": 5.75, "s": "https://a.example/b?c=d", "l": ["a", "a"], "m": {"a": None}, "numbers": [5, 5]},
    {"i": 2, "f": 2.5, "s": "-9223372036854775808", "l": [True, False], "m": {"true": True}, "numbers": [0.1, 0.2]},
    {"i": 11, "f": 0.1, "s": " padded ", "l": [{"n": 1}, {"n": 1}], "m": {"a": {"b": []}}, "numbers": [None]},
]  # fmt: skip

ANNOTATIONS: list[dict[str, str]] = [
    {
        "count": "5", "ratio": "0.75", "enabled": "true", "timeout": "2m", "expires": "2026-12-31T00:00:00Z",
        "size": "2Gi", "version": "1.9.0-rc.1", "home": "https://shop.example/a?b=c", "ip": "10.1.2.3",
        "gatewright.io/x": "y", "team": "core",
    },
    {
        "count": "five", "ratio": "NaN", "enabled": "yes", "timeout": "2 minutes", "expires": "soon", "size": "big",
        "version": "v1", "home": "shop", "ip": "::ffff:10.0.0.1",
    },
]  # fmt: skip


def thing(
    name: str,
    spec: JsonObject,
    *,
    labels: dict[str, str] | None,
    annotations: dict[str, str] | None,
) -> JsonObject:
    """Return a custom resource."""
    metadata: JsonObject = {"name": name}
    if labels is not None:
        metadata["labels"] = labels
    if annotations is not None:
        metadata["annotations"] = annotations
    return {
        "apiVersion": "cel.gatewright.io/v1",
        "kind": "Thing",
        "metadata": metadata,
        "spec": spec,
    }


def deployment(name: str, pod: JsonObject, **spec: Any) -> JsonObject:
    """Return a Deployment; the API server fills in its defaults."""
    labels = {"app": name, "app.kubernetes.io/name": "web"}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template, **spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    }


GOOD = {
    "name": "app",
    "image": "registry.company.com/shop/app:1.4.2",
    "ports": [{"containerPort": 8080, "name": "http"}],
    "resources": {
        "limits": {"cpu": "500m", "memory": "1Gi"},
        "requests": {"cpu": "100m", "memory": "1Gi"},
    },
    "securityContext": {"runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}},
    "env": [{"name": "LOG_LEVEL", "value": "info"}],
}
BAD = {
    "name": "side-car",
    "image": "nginx",
    "resources": {"limits": {"memory": "4Gi"}},
    "securityContext": {"privileged": True},
    "env": [{"name": "DB_PASSWORD", "value": "x"}],
}


def objects() -> list[JsonObject]:
    """Return the objects, each with a unique name."""
    labels: list[dict[str, str] | None] = [
        {"team": "core", "app": "web"},
        {"team": "", "empty": ""},
        None,
    ]
    things = [
        thing(
            f"thing-{index}",
            spec,
            labels=labels[index % 3],
            annotations=(*ANNOTATIONS, None)[index % 3],
        )
        for index, spec in enumerate(SPECS)
    ]
    volumes = [{"name": "host", "hostPath": {"path": "/"}}, {"name": "tmp", "emptyDir": {}}]
    deployments = [
        deployment("shop-web", {"containers": [GOOD]}, replicas=3),
        deployment(
            "both", {"containers": [GOOD, BAD], "hostNetwork": True, "volumes": volumes}, replicas=0
        ),
        deployment("bare", {"containers": [{"name": "x", "image": "r/x@sha256:" + "0" * 64}]}),
        deployment(
            "init7", {"containers": [BAD], "initContainers": [GOOD]}, strategy={"type": "Recreate"}
        ),
    ]
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "config"},
        "data": {"a": "1", "b": "x\ny"},
    }
    return [*things, *deployments, config]
