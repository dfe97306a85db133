"""The CEL expressions of built-in policies that CEL expresses exactly, by their parameters."""

from collections.abc import Callable
from typing import Any

from gatewright.tools.cel_text import literal

Rule = tuple[str, str]  # expression and message
PODS = {
    "pod": "object.kind == 'Pod' ? object.?spec.orValue({}) : object.kind == 'CronJob' ? "
    "object.?spec.?jobTemplate.?spec.?template.?spec.orValue({}) : object.kind == 'PodTemplate' ? "
    "object.?template.?spec.orValue({}) : object.?spec.?template.?spec.orValue({})",
    "containers": "variables.pod.?containers.orValue([]) + "
    "variables.pod.?initContainers.orValue([]) + variables.pod.?ephemeralContainers.orValue([])",
}


def _privileged(_: Any) -> list[Rule]:
    test = "!container.?securityContext.?privileged.orValue(false)"
    return [(f"variables.containers.all(container, {test})", "containers must not run privileged")]


def _host_namespaces(params: Any) -> list[Rule]:
    message = "pods must not use namespaces of the node"
    return [
        (f"!variables.pod.?{field}.orValue(false)", f"{field}: {message}")
        for field in ("hostNetwork", "hostPID", "hostIPC")
        if field not in params.allowed
    ]


def _service_types(params: Any) -> list[Rule]:
    if params.internal:
        return []
    test = f"!(object.spec.?type.orValue('ClusterIP') in {literal(params.forbidden)})"
    return [(test, "Services of this type are not allowed")]


# A function returns no rules for parameters that CEL cannot express.
COUNTERPARTS: dict[str, Callable[[Any], list[Rule]]] = {
    "privileged-containers": _privileged,
    "host-namespaces": _host_namespaces,
    "service-types": _service_types,
}
