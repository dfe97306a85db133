"""Objects of built-in kinds as the API server decodes them: with its defaults and zero values.

The constant defaults are in `openapi.json`, taken from a real API server. This module adds the
defaults that depend on other fields (k8s.io/kubernetes/pkg/apis/*/*/defaults.go). A quantity keeps
its notation, but becomes text. Fields that admission plugins and the storage of a kind add later
(service accounts, tolerations, cluster IPs, UIDs, status) are not set, nor are the pod-level
resources that are computed from containers.
"""

import copy
from collections.abc import Callable, Collection, Mapping
from typing import Any

from config.schemas import (
    METADATA,
    defaults_of,
    fields_of,
    is_built_in,
    omitted_of,
    parse_type,
    root_type,
)
from kube.resource import JsonObject

RBAC = "rbac.authorization.k8s.io"


def with_api_defaults(object: JsonObject) -> JsonObject:
    """Return an object of a built-in kind with the API's defaults and zero values.

    Return any other object, and one whose fields have wrong types, unchanged.
    """
    api_version, kind = str(object.get("apiVersion")), str(object.get("kind"))
    root = root_type(api_version, kind)
    if root is None or not is_built_in(root):
        return object
    try:
        filled: JsonObject = _fill(object, root)
        if complete := ROOT_RULES.get(kind):
            complete(filled)
    except (AttributeError, TypeError, KeyError):  # wrong types, which the API server rejects
        return object
    return filled


def _fill(value: Any, code: str) -> Any:
    type = parse_type(code)
    if type.shape == "list" and isinstance(value, list):
        is_of_structs = parse_type(type.inner).shape == "struct"
        items = [{} if each is None and is_of_structs else each for each in value]
        return [_fill(each, type.inner) for each in items]
    if type.shape == "map" and isinstance(value, dict):
        return {key: _fill(each, type.inner) for key, each in value.items()}
    if type.inner == "quantity" and isinstance(value, int | float):
        return str(value)
    if type.shape != "struct" or not isinstance(value, dict):
        return value
    fields, omitted = fields_of(type.inner), omitted_of(type.inner)
    if type.inner == METADATA:
        return {key: each for key, each in value.items() if each not in (None, {}, [])}
    filled = {
        key: item
        for key, item in value.items()
        if item is not None and not (key in omitted and item in ("", 0, [], {}))
    }
    filled |= {
        key: copy.deepcopy(default)
        for key, default in defaults_of(type.inner).items()
        if key not in filled and key not in CONDITIONAL.get(type.inner, ())
    }
    if complete := RULES.get(type.inner):
        complete(filled)
    return {key: _fill(each, fields.get(key, "")) for key, each in filled.items()}


def _pull_policy(image: str) -> str:
    name, _, digest = image.partition("@")
    repository, _, tag = name.rpartition("/")[2].partition(":")
    is_reference = repository != "" and repository == repository.lower()
    is_latest = tag == "latest" or not (tag or digest)
    return "Always" if is_latest and is_reference else "IfNotPresent"


def _container(container: JsonObject) -> None:
    container.setdefault("imagePullPolicy", _pull_policy(container.get("image", "")))


def _image_volume(source: JsonObject) -> None:
    source.setdefault("pullPolicy", _pull_policy(source.get("reference", "")))


def _pod_spec(spec: JsonObject) -> None:
    """Write the name of the service account into both of its fields."""
    if name := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def _stateful_set(spec: JsonObject) -> None:
    for claim in spec.get("volumeClaimTemplates", ()):
        claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}


def _volume(volume: JsonObject) -> None:
    if volume.keys() <= {"name"}:
        volume["emptyDir"] = {}


def _rolling_update(strategy: JsonObject) -> None:
    if strategy["type"] == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {})


def _service(spec: JsonObject) -> None:
    sort = spec["type"]
    if sort != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if sort in ("NodePort", "LoadBalancer") or spec.get("externalIPs"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if sort == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if spec["sessionAffinity"] == "ClientIP":
        timeout = {"clientIP": {"timeoutSeconds": 10800}}
        spec.setdefault("sessionAffinityConfig", timeout)


def _service_port(port: JsonObject) -> None:
    if port.get("targetPort", 0) in (0, ""):
        port["targetPort"] = port["port"]


def _network_policy(spec: JsonObject) -> None:
    types = ["Ingress", *(["Egress"] if spec.get("egress") else [])]
    spec.setdefault("policyTypes", types)


def _subject(subject: JsonObject) -> None:
    if subject["kind"] in ("User", "Group"):
        subject.setdefault("apiGroup", RBAC)


def _pod(object: JsonObject) -> None:
    """Add the defaults that a Pod has and a template lacks: requests from limits, host ports."""
    spec = object.setdefault("spec", {})
    object.setdefault("status", {})
    spec.setdefault("enableServiceLinks", True)
    for container in (*(spec.get("containers") or ()), *spec.get("initContainers", ())):
        resources = container.get("resources", {})
        if limits := resources.get("limits"):
            resources["requests"] = {**limits, **resources.get("requests", {})}
        for port in container.get("ports", ()) if spec.get("hostNetwork") else ():
            port.setdefault("hostPort", port["containerPort"])


def _namespace(object: JsonObject) -> None:
    metadata = object["metadata"]
    if name := metadata.get("name"):
        metadata.setdefault("labels", {}).setdefault("kubernetes.io/metadata.name", name)


def _job(object: JsonObject) -> None:
    spec = object["spec"]
    if labels := ((spec.get("template") or {}).get("metadata") or {}).get("labels"):
        object["metadata"].setdefault("labels", dict(labels))
    if "parallelism" not in spec:
        spec.setdefault("completions", 1)
    spec.setdefault("parallelism", 1)
    if "backoffLimitPerIndex" in spec:
        spec.setdefault("backoffLimit", 2147483647)
    if "podFailurePolicy" in spec:
        spec.setdefault("podReplacementPolicy", "Failed")
    for field, value in defaults_of(JOB).items():
        if field != "completions":
            spec.setdefault(field, value)


def _daemon_set(object: JsonObject) -> None:
    annotations = object["metadata"].setdefault("annotations", {})
    annotations.setdefault("deprecated.daemonset.template.generation", "0")


def _replication_controller(object: JsonObject) -> None:
    spec = object["spec"]
    if labels := ((spec.get("template") or {}).get("metadata") or {}).get("labels"):
        spec.setdefault("selector", dict(labels))
        object["metadata"].setdefault("labels", dict(labels))


JOB = "batch.v1.JobSpec"
ROOT_RULES: Mapping[str, Callable[[JsonObject], None]] = {
    "Pod": _pod,
    "Namespace": _namespace,
    "Job": _job,
    "DaemonSet": _daemon_set,
    "ReplicationController": _replication_controller,
}
RULES: Mapping[str, Callable[[JsonObject], None]] = {
    "core.v1.PodSpec": _pod_spec,
    "apps.v1.StatefulSetSpec": _stateful_set,
    "core.v1.Container": _container,
    "core.v1.EphemeralContainer": _container,
    "core.v1.ImageVolumeSource": _image_volume,
    "core.v1.Volume": _volume,
    "core.v1.ServiceSpec": _service,
    "core.v1.ServicePort": _service_port,
    "apps.v1.DeploymentStrategy": _rolling_update,
    "apps.v1.DaemonSetUpdateStrategy": _rolling_update,
    "apps.v1.StatefulSetUpdateStrategy": _rolling_update,
    "networking.v1.NetworkPolicySpec": _network_policy,
    "rbac.v1.Subject": _subject,
}
# Defaults that the functions above set, by type.
CONDITIONAL: Mapping[str, Collection[str]] = {
    "core.v1.Container": ("imagePullPolicy",),
    "core.v1.EphemeralContainer": ("imagePullPolicy",),
    "core.v1.ImageVolumeSource": ("pullPolicy",),
    "core.v1.Volume": ("emptyDir",),
    "core.v1.ServiceSpec": ("internalTrafficPolicy",),
    "apps.v1.DeploymentStrategy": ("rollingUpdate",),
    "apps.v1.DaemonSetUpdateStrategy": ("rollingUpdate",),
    "apps.v1.StatefulSetUpdateStrategy": ("rollingUpdate",),
    "networking.v1.NetworkPolicySpec": ("policyTypes",),
    # Defaults of a Job that the job template of a CronJob does not get.
    JOB: (
        "backoffLimit",
        "completionMode",
        "completions",
        "manualSelector",
        "parallelism",
        "podReplacementPolicy",
        "suspend",
    ),
}
