"""A ConfigMap whose users restart when its data changes, shared by AppConfig and VoteConfig.

The ConfigMap records which workloads a change concerns: one write sets the new data, its checksum,
the number of the change, and the workloads that use the ConfigMap at that moment. After this write
only these workloads are patched, until the status has the number of the change. So later users are
never restarted, nor are workloads that lose the annotation afterwards. After a crash at any point
the next process resumes, and each workload restarts exactly once.
"""

import hashlib
from collections.abc import Container, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

import orjson

from config.api.appconfig import ConfigMapStatus
from config.api.components import KeyReference
from config.api.meta import CustomResource
from config.field_paths import entry
from controller.reconcilers import projected_secrets
from controller.reconcilers.labels import inherited, metadata_origin
from controller.reconcilers.projected_secrets import environment_fields, variables_of
from controller.reconcilers.resources import (
    CONFIG_MAP,
    DAEMON_SET,
    DEPLOYMENT,
    SECRET,
    STATEFUL_SET,
)
from controller.runtime.diff import difference
from controller.runtime.kind import Counts, Reads
from controller.runtime.plan import Apply, ApplyFields, Observed, Plan, Problem, Reference, Step
from kube.resource import JsonObject, Resource

WORKLOADS = (DAEMON_SET, DEPLOYMENT, STATEFUL_SET)
INDEX = "configmap"
DOMAIN = "checksum.gatewright.io"
GIVEN = "secrets.gatewright.io"
SECRETS = "secret"
CHECKSUM = f"{DOMAIN}/data"  # annotations of the ConfigMap
REVISION = f"{DOMAIN}/revision"
RESTARTS = f"{DOMAIN}/restarts"
CHECKED = f"metadata.annotations[{CHECKSUM}]"
METADATA = metadata_origin()
LONGEST_KEY = 63


def plan_rolling(
    parent: CustomResource,
    status: ConfigMapStatus,
    name: str,
    data: Mapping[str, str],
    origin: Mapping[str, str],
    observed: Observed,
    now: datetime,
    secrets: Mapping[str, KeyReference] = MappingProxyType({}),
) -> Plan:
    """Plan a ConfigMap, and the restart of the workloads that used it at its last change.

    Containers that take all its keys get those of `secrets`, too, by the variable's name; a change
    of the references counts as a change of the data.
    """
    before = (
        _strip_runtime_fields(status)
        if status.config_map_name in (None, name)
        else ConfigMapStatus()
    )
    users = [
        (kind, workload)
        for kind in WORKLOADS
        for workload in sorted(observed.find(kind, INDEX, name), key=_name)
    ]
    stored = _annotations(observed.child(CONFIG_MAP, name))
    checksum = checksum_of(data, secrets)
    is_stored = stored.get(CHECKSUM) == checksum
    annotations = (
        _record_change(stored)
        if is_stored
        else _change(stored, before, checksum, [each for _, each in users])
    )
    metadata = {"name": name, "namespace": parent.namespace, "annotations": annotations}
    if labels := inherited(parent):
        metadata["labels"] = labels
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}
    revision = int(annotations[REVISION])
    is_open = is_stored and before.revision != revision
    concerned = annotations.get(RESTARTS, "").split() if is_open else ()
    missing = _missing(secrets, observed)
    changes = [
        _change_of(
            kind,
            workload,
            name,
            secrets,
            missing,
            checksum if _short(workload) in concerned else None,
        )
        for kind, workload in (users if is_stored else ())
    ]
    restarts = [step for step in changes if step]
    is_done = is_stored and all(step.ready for step in restarts)
    return Plan(
        steps=(
            *([_secrets_step(secrets, missing)] if secrets else ()),
            Step(
                "ConfigMap",
                [Apply(config_map, origin)],
                ready=is_stored,
                doing="failed to write the ConfigMap",
                condition="ConfigMapReady",
            ),
            *restarts,
        ),
        status=_after(before, name, checksum, revision if is_done else before.revision, now)
        if is_stored
        else before,
    )


def _record_change(stored: Mapping[str, str]) -> dict[str, str]:
    """Return the ConfigMap's annotations about its last change."""
    revision = stored.get(REVISION, "")
    kept = {key: stored[key] for key in (CHECKSUM, RESTARTS) if key in stored}
    return kept | {REVISION: revision if revision.isdecimal() else "1"}


def _change(
    stored: Mapping[str, str], status: ConfigMapStatus, checksum: str, users: Sequence[JsonObject]
) -> dict[str, str]:
    """Return the annotations for new data: they record a change of an existing ConfigMap."""
    revision = stored.get(REVISION, "")
    last = int(revision) if revision.isdecimal() else status.revision or 0
    before = stored.get(CHECKSUM) or status.checksum
    if before in (None, checksum):
        return {CHECKSUM: checksum, REVISION: str(last or 1)}
    restarts = " ".join(sorted(map(_short, users)))
    return {CHECKSUM: checksum, REVISION: str(last + 1)} | (
        {RESTARTS: restarts} if restarts else {}
    )


def plan_refusal(status: ConfigMapStatus, problem: Problem) -> Plan:
    """Return a plan without writes: children do not change until the object is corrected."""
    return Plan((), _strip_runtime_fields(status), problem=problem)


def _strip_runtime_fields(status: ConfigMapStatus) -> ConfigMapStatus:
    """Return a stored status without the fields that the runtime adds."""
    return status.model_copy(update={"conditions": None, "observed_generation": None})


def _missing(secrets: Mapping[str, KeyReference], observed: Observed) -> set[str]:
    """Return the names of the Secrets that do not exist, and are not optional."""
    names = {each.name for each in secrets.values() if not each.optional}
    return {each for each in names if not observed.find(SECRET, SECRETS, each)}


def _secrets_step(secrets: Mapping[str, KeyReference], missing: Container[str]) -> Step:
    """Return the step that waits for the Secrets that are referred to."""
    waiting = {name: each.name for name, each in sorted(secrets.items()) if each.name in missing}
    names = ", ".join(dict.fromkeys(waiting.values()))
    fields = ", ".join(f"{entry('spec.secrets', name)}.optional" for name in waiting)
    remedy = f"create it in the namespace of this object, or set {fields}: true"
    return Step(
        "Secrets",
        (),
        ready=not waiting,
        doing=f"waiting for Secret {names}",
        condition="SecretsReady",
        note=Problem(remedy, "SecretNotFound") if waiting else "",
    )


def _change_of(
    kind: Resource,
    workload: JsonObject,
    name: str,
    secrets: Mapping[str, KeyReference],
    missing: Container[str],
    checksum: str | None,
) -> Step | None:
    """Return the step that gives a workload's containers the secrets, and restarts its pods.

    `checksum` is that of the change which the pods are restarted for; None: for none.
    """
    metadata, template = workload["metadata"], workload["spec"]["template"]
    stored = (template.get("metadata") or {}).get("annotations") or {}
    own = frozenset(stored.get(annotation_key(name, GIVEN), "").split())
    pod = environment_fields(template.get("spec") or {}, name, secrets, missing, own)
    if checksum is None and not pod:
        return None
    restarted = checksum or stored.get(annotation_key(name))
    annotations = {annotation_key(name): restarted} if restarted else {}
    if pod:
        annotations[annotation_key(name, GIVEN)] = " ".join(sorted(variables_of(pod)))
    fields = {"metadata": {"annotations": annotations}} | ({"spec": pod} if pod else {})
    reference = Reference(kind, metadata["name"], metadata["uid"], metadata["namespace"])
    return Step(
        f"restart of {kind.kind} {metadata['name']}",
        [ApplyFields(reference, {"spec": {"template": fields}})],
        ready=difference(workload, {"spec": {"template": fields}}) is None,
        doing=f"failed to restart {kind.kind} {metadata['name']}",
    )


def _after(
    status: ConfigMapStatus, name: str, checksum: str, revision: int | None, now: datetime
) -> ConfigMapStatus:
    """Return the status once the ConfigMap holds the data.

    `last_updated` becomes `now` only if the data is new.
    """
    is_new = status.checksum != checksum or status.last_updated is None
    return ConfigMapStatus(
        config_map_name=name,
        checksum=checksum,
        revision=revision,
        last_updated=now if is_new else status.last_updated,
    )


def config_maps_of(workload: JsonObject) -> list[str]:
    """Return the names of the ConfigMaps that a workload's pods read."""
    template = (workload.get("spec") or {}).get("template") or {}
    pod = template.get("spec") or {}
    names = []
    for container in (*_list(pod, "containers"), *_list(pod, "initContainers")):
        names += [_at(each, "configMapRef") for each in container.get("envFrom") or ()]
        names += [_at(each, "valueFrom", "configMapKeyRef") for each in container.get("env") or ()]
    for volume in pod.get("volumes") or ():
        names.append(_at(volume, "configMap"))
        names += [
            _at(source, "configMap") for source in _list(volume.get("projected") or {}, "sources")
        ]
    return [name for name in names if name]


def kept_of(workload: JsonObject) -> JsonObject:
    """Return what the planner reads of a workload: its annotations here, and its ConfigMaps."""
    template = (workload.get("spec") or {}).get("template") or {}
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    kept = {key: value for key, value in annotations.items() if key.startswith((DOMAIN, GIVEN))}
    volumes = [{"configMap": {"name": name}} for name in dict.fromkeys(config_maps_of(workload))]
    spec = {"volumes": volumes, **projected_secrets.kept_of(template.get("spec") or {})}
    return {"spec": {"template": {"metadata": {"annotations": kept}, "spec": spec}}}


def checksum_of(
    data: Mapping[str, str], secrets: Mapping[str, KeyReference] = MappingProxyType({})
) -> str:
    """Return a hash of the data, and of the references if there are any.

    The order of keys does not matter.
    """
    content: Any = dict(data)
    if secrets:
        content = [content, {key: each.to_api() for key, each in secrets.items()}]
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()


def annotation_key(name: str, domain: str = DOMAIN) -> str:
    """Return the annotation by which a ConfigMap restarts pods, or of the domain's purpose.

    The key is unique and short enough for any name.
    """
    if len(name) > LONGEST_KEY:
        name = f"{name[:46].rstrip('.-')}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return f"{domain}/{name}"


def _list(parent: JsonObject, field: str) -> list[Any]:
    return parent.get(field) or []


def _at(value: JsonObject, *path: str) -> str:
    """Return the name in a reference; "" if there is none."""
    for step in path:
        value = value.get(step) or {}
    return str(value.get("name") or "")


def _annotations(object: JsonObject | None) -> Mapping[str, str]:
    return (object or {}).get("metadata", {}).get("annotations") or {}


def _name(object: JsonObject) -> str:
    return str(object["metadata"]["name"])


def _short(workload: JsonObject) -> str:
    """Return the start of a uid: enough to identify a workload within a namespace."""
    return str(workload["metadata"]["uid"])[:8]


READS = tuple(Reads(each, {INDEX: config_maps_of}, fields=kept_of) for each in WORKLOADS)
CHANGES = Counts(
    "gatewright_config_changes", "checksum", "ConfigMaps that were created, or whose data changed."
)
