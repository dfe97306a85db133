"""AppConfig: a ConfigMap with rendered settings, and a restart of its users when they change."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from config.api.appconfig import FROM_NAMESPACE, AppConfig, AppConfigStatus
from config.config_maps import (
    ALIASES,
    ENVIRONMENTS,
    LABEL,
    config_map_name,
    environment_of,
    secret_faults,
    settings,
)
from config.field_paths import entry
from controller.reconcilers.indexes import by_name, nothing
from controller.reconcilers.resources import CONFIG_MAP, NAMESPACE, SECRET
from controller.reconcilers.rolling import (
    CHANGES,
    CHECKED,
    INDEX,
    METADATA,
    READS,
    SECRETS,
    WORKLOADS,
    plan_refusal,
    plan_rolling,
)
from controller.runtime.kind import PlannedKind, Reads
from controller.runtime.plan import Observed, Plan, Problem, incomplete
from kube.resource import JsonObject

ORIGIN = {
    **METADATA,
    "metadata.name": "spec.application",
    CHECKED: "spec.config",
    "data": "spec.config",
}
NAMESPACE_INDEX = "namespace"
MAX_FAULTS = 3


def plan(appconfig: AppConfig, observed: Observed, now: datetime) -> Plan:
    """Plan what should exist for `appconfig`, given what was `observed`."""
    spec = appconfig.spec
    if not spec.application:
        return plan_refusal(appconfig.status, incomplete("spec.application"))
    environment: str | None = spec.environment
    if environment == FROM_NAMESPACE:
        environment = environment_of(appconfig.namespace, _labels(appconfig.namespace, observed))
    if environment is None:
        return plan_refusal(appconfig.status, _unknown_environment(appconfig.namespace))
    values = {key: each.to_api() for key, each in spec.values.items()}
    data, faults = settings(spec.application, environment, appconfig.namespace, spec.config, values)
    references = {key: each.to_api() for key, each in spec.secrets.items()}
    faults += secret_faults(references, {*spec.config, *spec.values})
    if faults:
        shown = [f"{path}: {text}" for path, text in faults[:MAX_FAULTS]]
        more = [f"and {len(faults) - MAX_FAULTS} more"] if len(faults) > MAX_FAULTS else []
        return plan_refusal(appconfig.status, Problem("; ".join(shown + more), "Invalid"))
    origin = ORIGIN | {entry("data", key): entry("spec.values", key) for key in spec.values}
    name = config_map_name(spec.application)
    planned = plan_rolling(
        appconfig, appconfig.status, name, data, origin, observed, now, secrets=spec.secrets
    )
    if not any(step.name == CONFIG_MAP.kind and step.ready for step in planned.steps):
        return planned
    status = planned.status.to_api() | {"environment": environment}
    return replace(planned, status=AppConfigStatus.model_validate(status))


def _labels(namespace: str, observed: Observed) -> Mapping[str, str]:
    """Return the labels of a namespace; none where the controller may not read it."""
    for object in observed.find(NAMESPACE, NAMESPACE_INDEX, namespace):
        return object["metadata"].get("labels") or {}
    return {}


def _unknown_environment(namespace: str) -> Problem:
    names = ", ".join((*ENVIRONMENTS, *ALIASES))
    message = (
        f"spec.environment is {FROM_NAMESPACE}, and namespace {namespace} tells none: label it "
        f"{LABEL}=ENVIRONMENT (one of {names}), or name the environment in spec.environment"
    )
    return Problem(message, "EnvironmentUnknown")


def by_namespace(appconfig: JsonObject) -> Iterator[str]:
    """Yield the namespace that tells its environment: a change of its labels enqueues it."""
    if (appconfig.get("spec") or {}).get("environment") == FROM_NAMESPACE:
        yield appconfig["metadata"]["namespace"]


def kept_of(namespace: JsonObject) -> JsonObject:
    """Return what the planner reads of a namespace: the label that tells the environment."""
    labels = namespace["metadata"].get("labels") or {}
    kept = {key: value for key, value in labels.items() if key == LABEL}
    return {"metadata": {"labels": kept}} if kept else {}


def by_secret(appconfig: JsonObject) -> Iterator[str]:
    """Yield the names of the Secrets that it refers to: their creation enqueues it."""
    for reference in ((appconfig.get("spec") or {}).get("secrets") or {}).values():
        if name := (reference or {}).get("name"):
            yield name


def by_config_map(appconfig: JsonObject) -> Iterator[str]:
    """Yield the name of its ConfigMap: workloads that read it enqueue the AppConfig."""
    if application := (appconfig.get("spec") or {}).get("application"):
        yield config_map_name(application)


APPCONFIG = PlannedKind(
    AppConfig,
    plan=plan,
    owns=(CONFIG_MAP,),
    reads=(
        *READS,
        Reads(NAMESPACE, {NAMESPACE_INDEX: by_name}, fields=kept_of),
        Reads(SECRET, {SECRETS: by_name}, fields=nothing),
    ),
    patches=WORKLOADS,
    optional=(NAMESPACE,),
    indexes={INDEX: by_config_map, NAMESPACE_INDEX: by_namespace, SECRETS: by_secret},
    counts=CHANGES,
)
