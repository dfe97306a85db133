"""AppConfig: a ConfigMap with rendered settings, and a restart of its users when they change."""

from collections.abc import Iterator
from datetime import datetime

from config.api.appconfig import AppConfig
from config.config_maps import config_map_name, settings
from config.field_paths import entry
from controller.reconcilers.resources import CONFIG_MAP
from controller.reconcilers.rolling import (
    CHANGES,
    CHECKED,
    INDEX,
    METADATA,
    READS,
    WORKLOADS,
    refused,
    rolled,
)
from controller.runtime.kind import PlannedKind
from controller.runtime.plan import Observed, Plan, Problem, incomplete
from kube.resource import JsonObject

ORIGIN = {
    **METADATA,
    "metadata.name": "spec.application",
    CHECKED: "spec.config",
    "data": "spec.config",
}
MAX_FAULTS = 3


def plan(appconfig: AppConfig, observed: Observed, now: datetime) -> Plan:
    """Plan what should exist for `appconfig`, given what was `observed`."""
    spec = appconfig.spec
    if not spec.application:
        return refused(appconfig.status, incomplete("spec.application"))
    values = {key: each.to_api() for key, each in spec.values.items()}
    data, faults = settings(
        spec.application, spec.environment, appconfig.namespace, spec.config, values
    )
    if faults:
        shown = [f"{path}: {text}" for path, text in faults[:MAX_FAULTS]]
        more = [f"and {len(faults) - MAX_FAULTS} more"] if len(faults) > MAX_FAULTS else []
        return refused(appconfig.status, Problem("; ".join(shown + more), "Invalid"))
    origin = ORIGIN | {entry("data", key): entry("spec.values", key) for key in spec.values}
    return rolled(
        appconfig, appconfig.status, config_map_name(spec.application), data, origin, observed, now
    )


def by_config_map(appconfig: JsonObject) -> Iterator[str]:
    """Yield the name of its ConfigMap: workloads that read it enqueue the AppConfig."""
    if application := (appconfig.get("spec") or {}).get("application"):
        yield config_map_name(application)


APPCONFIG = PlannedKind(
    AppConfig,
    plan=plan,
    owns=(CONFIG_MAP,),
    reads=READS,
    patches=WORKLOADS,
    indexes={INDEX: by_config_map},
    counts=CHANGES,
)
