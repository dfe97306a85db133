"""The CEL rules of built-in policies that CEL expresses exactly, by their parameters."""

from collections.abc import Callable
from typing import Any

from gatewright.tools.cel_text import literal
from gatewright.tools.export.image_rules import (
    image_digests,
    image_pull_policy,
    image_registries,
    image_tags,
)
from gatewright.tools.export.network_rules import (
    external_ips,
    ingress_hosts,
    ingress_tls,
    node_ports,
)
from gatewright.tools.export.pod_rules import (
    CelRule,
    in_user_namespaces,
    of_containers,
    on_windows,
)
from gatewright.tools.export.security_rules import CHECK_RULES, group_ids, pod_security
from gatewright.tools.export.volume_rules import (
    empty_dir_size,
    flex_volume_drivers,
    storage_classes,
)
from gatewright.tools.export.workload_rules import (
    autoscaler_bounds,
    container_counts,
    default_namespace,
    disruption_budgets,
    memory_units,
    naked_pods,
    probe_timeouts,
    probes,
    required_annotations,
    required_labels,
    resource_requests,
    service_account_tokens,
    service_accounts,
)

# A function returns no rules for parameters that CEL cannot express.
Counterpart = Callable[[Any], list[CelRule]]


def _exempting(name: str, exempt: Callable[[list[CelRule]], list[CelRule]]) -> Counterpart:
    return lambda params: exempt(CHECK_RULES[name](params))


def _service_types(params: Any) -> list[CelRule]:
    if params.internal:
        return []
    test = f"!(object.spec.?type.orValue('ClusterIP') in {literal(params.forbidden)})"
    return [CelRule(test, "Services of this type are not allowed")]


def _host_paths(params: Any) -> list[CelRule]:
    rules = CHECK_RULES["host-path-volumes"](params)
    of_volume = "object.kind != 'PersistentVolume' || !has(dyn(object).spec.hostPath)"
    message = "pods must not mount paths of the node"
    return [*rules, CelRule(of_volume, f"spec.hostPath: {message}")] if rules else []


def _replica_limits(params: Any) -> list[CelRule]:
    if params.minimum:
        return []  # the minimum of a ReplicaSet depends on its owner
    message = f"{params.tier} workloads cannot exceed {params.maximum} replicas"
    return [
        CelRule(
            f"dyn(object).?spec.?{name}.orValue(0) <= {params.maximum}",
            f"spec.{name}: {message}",
            f"'spec.{name}: ' + string(dyn(object).spec.{name}) + {literal(f'; {message}')}",
        )
        for name in ("replicas", "minReplicas", "maxReplicas")
    ]


def _resource_limits(params: Any) -> list[CelRule]:
    if params.limit_ranges:
        return []
    rules = []
    for name in params.required:
        tests = [
            f"{holder}.?resources.?limits[?{literal(name)}].{_is_set(name)}"
            for holder in ("variables.pod", "container")
        ]
        message = f"resources.limits.{name}: resource limits required in {params.tier}"
        rules.append(of_containers(" || ".join(tests), message, ephemeral=False))
    return rules


def _is_set(name: str) -> str:
    """Return the test of an optional limit; 0 cpu or memory counts as none."""
    if name == "ephemeral-storage":
        return "hasValue()"
    return "optMap(limit, quantity(string(limit)).isGreaterThan(quantity('0'))).orValue(false)"


def _read_only(params: Any) -> list[CelRule]:
    test = "container.?securityContext.?readOnlyRootFilesystem.orValue(false)"
    message = "securityContext.readOnlyRootFilesystem: must be true"
    return on_windows([of_containers(test, message, ephemeral=params.ephemeral)])


def _interactive(params: Any) -> list[CelRule]:
    return [
        of_containers(
            f"!container.?{field}.orValue(false)",
            f"{field}: containers do not request stdin or a TTY",
            ephemeral=params.ephemeral,
        )
        for field in ("stdin", "tty")
    ]


WRITERS = "judges who asks for what, with the roles that Kubernetes creates itself"
# Why other policies that read the object alone have no counterpart.
NO_COUNTERPART = {
    **dict.fromkeys(
        (
            "anonymous-bindings", "cluster-admin-bindings", "default-roles",
            "interactive-sessions", "service-account-changes",
        ),
        WRITERS,
    ),
    "deprecated-apis": "judges the version that was sent, and the API server has converted the "
    "object before; it warns of deprecated versions itself",
    "resource-bounds": "adds up the amounts of containers, and CEL cannot add up a list",
    "resource-ratios": "multiplies amounts, which CEL's quantities cannot",
}  # fmt: skip

COUNTERPARTS: dict[str, Counterpart] = {
    "pod-security": pod_security,
    **{
        name: CHECK_RULES[name]
        for name in (
            "app-armor", "host-namespaces", "host-ports", "host-probes", "privileged-containers",
            "proc-mount", "selinux-options", "sysctls", "volume-types", "windows-host-process",
        )
    },
    "capabilities": _exempting("capabilities", on_windows),
    "privilege-escalation": _exempting("privilege-escalation", on_windows),
    "seccomp-profiles": _exempting("seccomp-profiles", on_windows),
    "run-as-non-root": _exempting("run-as-non-root", in_user_namespaces),
    "run-as-user": _exempting("run-as-user", in_user_namespaces),
    "host-path-volumes": _host_paths,
    "autoscaler-bounds": autoscaler_bounds,
    "container-counts": container_counts,
    "default-namespace": default_namespace,
    "disruption-budgets": disruption_budgets,
    "empty-dir-size": empty_dir_size,
    "external-ips": external_ips,
    "flex-volume-drivers": flex_volume_drivers,
    "group-ids": group_ids,
    "image-digests": image_digests,
    "image-pull-policy": image_pull_policy,
    "image-registries": image_registries,
    "image-tags": image_tags,
    "ingress-hosts": ingress_hosts,
    "ingress-tls": ingress_tls,
    "memory-units": memory_units,
    "naked-pods": naked_pods,
    "node-ports": node_ports,
    "probe-timeouts": probe_timeouts,
    "probes": probes,
    "required-annotations": required_annotations,
    "required-labels": required_labels,
    "resource-requests": resource_requests,
    "service-account-tokens": service_account_tokens,
    "service-accounts": service_accounts,
    "storage-classes": storage_classes,
    "interactive-containers": _interactive,
    "read-only-root-filesystem": _read_only,
    "replica-limits": _replica_limits,
    "resource-limits": _resource_limits,
    "service-types": _service_types,
}  # fmt: skip
