"""A ConfigMap whose users restart when its data changes: what AppConfig and VoteConfig share.

The ConfigMap itself remembers whom a change concerns: beside the new data, in the same write, it gets the data's
checksum and who used it at that moment. Only then are those workloads patched, and only those. So whoever begins to use
it is never restarted; and a process that ends anywhere between leaves a state from which the next one goes on, with
nobody forgotten and nobody restarted twice.
"""

import hashlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import orjson

from config.api.appconfig import ConfigMapStatus
from config.api.meta import CustomResource
from controller.reconcilers.labels import inherited
from controller.runtime.plan import Apply, Counts, Object, Patch, Plan, Problem, Reads, Reference, Seen, Step
from kube.resource import Resource

CONFIG_MAP = Resource("", "v1", "configmaps", "ConfigMap")
WORKLOADS = (
    Resource("apps", "v1", "daemonsets", "DaemonSet"),
    Resource("apps", "v1", "deployments", "Deployment"),
    Resource("apps", "v1", "statefulsets", "StatefulSet"),
)
INDEX = "configmap"
DOMAIN = "checksum.gatewright.io"
CHECKSUM = f"{DOMAIN}/data"  # annotations of the ConfigMap
RESTARTS = f"{DOMAIN}/restarts"
LONGEST_KEY = 63


def rolled(
    parent: CustomResource,
    status: ConfigMapStatus,
    name: str,
    data: Mapping[str, str],
    origin: Mapping[str, str],
    seen: Seen,
    now: datetime,
) -> Plan:
    """Plan a ConfigMap with this data, and the restart of what used it when its data last changed."""
    checksum = checksum_of(data)
    users = [(kind, each) for kind in WORKLOADS for each in sorted(seen.find(kind, INDEX, name), key=_name)]
    stored = _annotations(seen.child(CONFIG_MAP, name))
    is_stored = stored.get(CHECKSUM) == checksum
    if is_stored:
        restarts = stored.get(RESTARTS, "")
    else:
        before = stored.get(CHECKSUM) or (status.checksum if status.config_map_name == name else None)
        restarts = " ".join(sorted(_short(each) for _, each in users)) if before not in (None, checksum) else ""
    metadata = {
        "name": name,
        "namespace": parent.namespace,
        "annotations": {CHECKSUM: checksum} | ({RESTARTS: restarts} if restarts else {}),
    }
    if labels := inherited(parent):
        metadata["labels"] = labels
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}
    concerned = restarts.split() if is_stored else ()
    return Plan(
        steps=(
            Step("ConfigMap", [Apply(config_map, origin)], holds=is_stored, doing="failed to write the ConfigMap"),
            *(_restart(kind, each, name, checksum) for kind, each in users if _short(each) in concerned),
        ),
        status=_after(status, name, checksum, now) if is_stored else _observed(status),
    )


def refused(status: ConfigMapStatus, message: str, reason: str) -> Plan:
    """Plan nothing: what exists stays as it is until the object is mended."""
    return Plan((), _observed(status), problem=Problem(message, reason))


def _observed(status: ConfigMapStatus) -> ConfigMapStatus:
    """Return a stored status without what the runtime adds."""
    return status.model_copy(update={"conditions": None, "observed_generation": None})


def _restart(kind: Resource, workload: Object, name: str, checksum: str) -> Step:
    metadata = workload["metadata"]
    key = annotation_key(name)
    pods = workload["spec"]["template"].get("metadata") or {}
    return Step(
        f"restart of {kind.kind} {metadata['name']}",
        [
            Patch(
                Reference(kind, metadata["name"], metadata["uid"], metadata["namespace"]),
                {"spec": {"template": {"metadata": {"annotations": {key: checksum}}}}},
            )
        ],
        holds=(pods.get("annotations") or {}).get(key) == checksum,
        doing=f"failed to restart {kind.kind} {metadata['name']}",
    )


def _after(status: ConfigMapStatus, name: str, checksum: str, now: datetime) -> ConfigMapStatus:
    """Return the status once the ConfigMap holds the data; it is of now only where that is new."""
    is_new = (status.config_map_name, status.checksum) != (name, checksum)
    return ConfigMapStatus(
        config_map_name=name,
        checksum=checksum,
        last_updated=now if is_new or status.last_updated is None else status.last_updated,
    )


def config_maps_of(workload: Object) -> Iterator[str]:
    """Yield the names of the ConfigMaps that the pods of a workload read."""
    pod = ((workload.get("spec") or {}).get("template") or {}).get("spec") or {}
    for container in (*_list(pod, "containers"), *_list(pod, "initContainers")):
        yield from (_at(each, "configMapRef") for each in _list(container, "envFrom"))
        yield from (_at(each, "valueFrom", "configMapKeyRef") for each in _list(container, "env"))
    for volume in _list(pod, "volumes"):
        yield _at(volume, "configMap")
        yield from (_at(each, "configMap") for each in _list(volume.get("projected") or {}, "sources"))


def checksum_of(data: Mapping[str, str]) -> str:
    """Return what tells data from other data, in whatever order."""
    return hashlib.sha256(orjson.dumps(dict(data), option=orjson.OPT_SORT_KEYS)).hexdigest()


def annotation_key(name: str) -> str:
    """Return the annotation by which a ConfigMap restarts pods: one for each, however long its name is."""
    if len(name) > LONGEST_KEY:
        name = f"{name[:46].rstrip('.-')}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return f"{DOMAIN}/{name}"


def _list(parent: Object, field: str) -> list[Any]:
    return parent.get(field) or []


def _at(value: Object, *path: str) -> str:
    """Return the name in a reference; empty where there is none, which no ConfigMap has."""
    for step in path:
        value = value.get(step) or {}
    return str(value.get("name") or "")


def _annotations(object: Object | None) -> Mapping[str, str]:
    return (object or {}).get("metadata", {}).get("annotations") or {}


def _name(object: Object) -> str:
    return str(object["metadata"]["name"])


def _short(workload: Object) -> str:
    """Return enough of a uid to know a workload again among those of one namespace."""
    return str(workload["metadata"]["uid"])[:8]


READS = tuple(Reads(each, {INDEX: config_maps_of}) for each in WORKLOADS)
CHANGES = Counts("gatewright_config_changes", "checksum", "ConfigMaps that were made, or got other data.")
