"""Which lists of built-in kinds have items with keys; the API treats every other list as atomic.

They are few, and copied here: reading all schemas (`config.schemas`) would cost the controller
megabytes. A test holds them to these schemas.

Server-side apply keeps the items that others add to a list with keys, and replaces an atomic list
as a whole (https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy). Lists
of custom resources are atomic unless their schema says otherwise; if it does, an apply changes
nothing, and is not repeated.
"""

from collections.abc import Callable, Mapping
from typing import Any

from kube.resource import group_version

NAME = ("name",)
# The groups whose lists have these keys; in others, a list of such a name is another one.
GROUPS = frozenset({"", "apps", "batch", "admissionregistration.k8s.io"})
KEYS: Mapping[str, tuple[str, ...]] = {
    "containers": NAME,
    "initContainers": NAME,
    "ephemeralContainers": NAME,
    "env": NAME,
    "volumes": NAME,
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "imagePullSecrets": NAME,
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "resourceClaims": NAME,
    "schedulingGates": NAME,
    "claims": NAME,
    "matchConditions": NAME,
    "variables": NAME,
    "secrets": NAME,
    "webhooks": NAME,
    "ownerReferences": ("uid",),
}
DEFAULTS = {"protocol": "TCP"}


KeyFunction = Callable[[str, Any], tuple[Any, ...] | None]


def has_keyed_lists(object: Mapping[str, Any]) -> bool:
    """Return whether the lists of an object of this kind have the keys of this module."""
    return group_version(str(object.get("apiVersion", "v1")))[0] in GROUPS


def list_key(field: str, item: Any) -> tuple[Any, ...] | None:
    """Return the key of an item of the list `field`, after its name; None if the list is atomic."""
    if not isinstance(item, dict):
        return None
    names = KEYS.get(field, ())
    if field == "ports":  # of a container, or of a Service
        names = ("containerPort" if "containerPort" in item else "port", "protocol")
    if not names or names[0] not in item:
        return None
    return names[0], *(item.get(name, DEFAULTS.get(name)) for name in names)


def name_of(field: str, item: Any) -> tuple[Any, ...] | None:
    """Return the name of an item, which is its key if the list of a custom resource has keys."""
    del field
    return ("name", item["name"]) if isinstance(item, dict) and "name" in item else None
