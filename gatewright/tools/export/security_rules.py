"""The checks of the Pod Security Standards as rules in CEL, by the names of their policies."""

from collections.abc import Callable
from typing import Any

from gatewright.tools.cel_text import every, literal, some
from gatewright.tools.export.pod_rules import (
    CelRule,
    in_user_namespaces,
    of_containers,
    of_contexts,
    of_pod,
    on_windows,
    unless,
    within,
)
from webhook.policies import seccomp_profiles
from webhook.policies._pod_security_checks import NEWEST, PodSecurityCheck, checks
from webhook.policies._ranges import format_ranges

CONTEXT = "container.?securityContext"
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
ANNOTATED = {"RuntimeDefault": "runtime/default", "Unconfined": "unconfined"}
HANDLERS = (
    "livenessProbe", "readinessProbe", "startupProbe", "lifecycle.?postStart", "lifecycle.?preStop",
)  # fmt: skip
ON_WINDOWS = ("capabilities", "privilege-escalation", "seccomp-profiles")


def _export_privileged(_: Any) -> list[CelRule]:
    test = f"!{CONTEXT}.?privileged.orValue(false)"
    return [of_containers(test, "securityContext.privileged: containers must not run privileged")]


def _host_namespaces(params: Any) -> list[CelRule]:
    message = "pods must not use namespaces of the node"
    return [
        of_pod(f"!variables.pod.?{field}.orValue(false)", f"{field}: {message}")
        for field in ("hostNetwork", "hostPID", "hostIPC")
        if field not in params.allowed
    ]


def _capabilities(params: Any) -> list[CelRule]:
    rules, path = [], "securityContext.capabilities"
    if params.required_drop:
        needed = literal(list(params.required_drop))
        drop = f"{CONTEXT}.?capabilities.?drop.orValue([])"
        test = f"'ALL' in {drop} || {needed}.all(capability, capability in {drop})"
        message = f"{path}.drop: containers must drop {', '.join(params.required_drop)}"
        rules.append(of_containers(test, message))
    if "ALL" not in params.allowed:
        add = f"{CONTEXT}.?capabilities.?add.orValue([])"
        allowed = literal(list(params.allowed))
        test = f"{add}.all(capability, capability in {allowed})"
        names = ", ".join(params.allowed) or "no capability"
        rules.append(of_containers(test, f"{path}.add: containers may add {names}"))
    return rules


def _host_paths(params: Any) -> list[CelRule]:
    if params.allowed or params.denied:
        return []
    test = "variables.pod.?volumes.orValue([]).all(volume, !has(volume.hostPath))"
    return [of_pod(test, "volumes: pods must not mount paths of the node")]


def _host_ports(params: Any) -> list[CelRule]:
    allowed = within("port.hostPort", params.allowed)
    test = some(["port.?hostPort.orValue(0) == 0", allowed])
    each = f"container.?ports.orValue([]).all(port, {test})"
    message = "ports.hostPort: containers must not open host ports"
    if params.allowed:
        message = f"ports.hostPort: must be within {', '.join(map(str, params.allowed))}"
    return [of_containers(each, message)]


def _host_probes(params: Any) -> list[CelRule]:
    hosts = literal(["", *params.allowed])
    tests = [
        f"container.?{handler}.?{sort}.?host.orValue('') in {hosts}"
        for handler in HANDLERS
        for sort in ("httpGet", "tcpSocket")
    ]
    message = "probes and lifecycle hooks must target the pod itself"
    return [of_containers(every(tests), message)]


def _proc_mount(_: Any) -> list[CelRule]:
    test = f"{CONTEXT}.?procMount.orValue('Default') == 'Default'"
    return [of_containers(test, "securityContext.procMount: must be Default")]


def _profiles(field: str, params: Any) -> CelRule:
    allowed = literal(["", *params.allowed])
    test = f"holder.securityContext.?{field}.?type.orValue('') in {allowed}"
    message = f"securityContext.{field}.type: must be {' or '.join(params.allowed) or 'left out'}"
    return of_contexts(test, message)


def _missing(field: str, message: str, otherwise: str = "") -> CelRule:
    """Return the rule that a field is set, on the pod or on each container."""
    on_pod = f"variables.pod.?securityContext.?{field}.hasValue()"
    test = some(filter(None, [on_pod, f"{CONTEXT}.?{field}.hasValue()", otherwise]))
    return of_containers(test, f"securityContext.{field.replace('?', '')}: {message}")


def _seccomp(params: Any) -> list[CelRule]:
    if params.localhost_profiles is not None:
        return []
    rules = [_profiles("seccompProfile", params)]
    if params.required:
        message = f"must be set here or on the pod: {' or '.join(params.allowed)}"
        rules.append(_missing("seccompProfile.?type", message))
    return rules


def _app_armor(params: Any) -> list[CelRule]:
    if params.localhost_profiles is not None:
        return []
    values = ["", *(ANNOTATED[each] for each in params.allowed if each in ANNOTATED)]
    value = "variables.annotations[key]"
    tests = [f"!key.startsWith('{APP_ARMOR}')", f"{value} in {literal(values)}"]
    if "Localhost" in params.allowed:
        tests.append(f"{value}.startsWith('localhost/')")
    message = f"annotations {APP_ARMOR}…: must be {' or '.join(params.allowed) or 'left out'}"
    annotated = of_pod(f"variables.annotations.all(key, {some(tests)})", message)
    return [_profiles("appArmorProfile", params), annotated]


def _selinux(params: Any) -> list[CelRule]:
    rules = []
    for field in ("type", "user", "role", "level"):
        allowed = getattr(params, f"{field}s")
        if allowed is not None:
            option = f"holder.securityContext.?seLinuxOptions.?{field}.orValue('')"
            must = f"must be {', '.join(allowed)}" if allowed else "must not be set"
            message = f"securityContext.seLinuxOptions.{field}: {must}"
            rules.append(of_contexts(f"{option} in {literal(['', *allowed])}", message))
    return rules


def _sysctls(params: Any) -> list[CelRule]:
    allowed = [str(each) for each in params.allowed]
    if params.denied or any("*" in each or "?" in each for each in allowed):
        return []
    sysctls = "variables.pod.?securityContext.?sysctls.orValue([])"
    test = f"{sysctls}.all(sysctl, sysctl.name in {literal(allowed)})"
    return [of_pod(test, "securityContext.sysctls: only safe sysctls may be set")]


def _host_process(_: Any) -> list[CelRule]:
    test = "!holder.securityContext.?windowsOptions.?hostProcess.orValue(false)"
    message = "securityContext.windowsOptions.hostProcess: must not be true"
    return [of_contexts(test, message)]


def _privilege_escalation(_: Any) -> list[CelRule]:
    test = f"!{CONTEXT}.?allowPrivilegeEscalation.orValue(true)"
    return [of_containers(test, "securityContext.allowPrivilegeEscalation: must be false")]


def _non_root(params: Any) -> list[CelRule]:
    user = f"{CONTEXT}.?runAsUser.orValue(variables.pod.?securityContext.?runAsUser.orValue(0))"
    suffices = f"{user} != 0" if params.user_suffices else ""
    test = "holder.securityContext.?runAsNonRoot.orValue(true)"
    return [
        of_contexts(test, "securityContext.runAsNonRoot: must not be false"),
        _missing("runAsNonRoot", "must be true here or on the pod", suffices),
    ]


def _user(params: Any) -> list[CelRule]:
    return _ids("runAsUser", params)


def _ids(field: str, params: Any) -> list[CelRule]:
    """Return the rules of user or group ids that the pod and its containers may set."""
    id = f"holder.securityContext.{field}"
    test = some([f"!has({id})", within(id, params.allowed)])
    message = f"securityContext.{field}: must be within {format_ranges(params.allowed)}"
    rules = [of_contexts(test, message)]
    if params.required:
        rules += on_windows([_missing(field, "must be set here or on the pod")])
    return rules


def group_ids(params: Any) -> list[CelRule]:
    """Return the rules of group-ids."""
    rules = [] if params.run_as_group is None else _ids("runAsGroup", params.run_as_group)
    context = "variables.pod.?securityContext"
    # A list of no or one group, and the list of the supplemental ones.
    groups = {
        "fsGroup": (f"{context}.?fsGroup.optMap(id, [id]).orValue([])", params.fs_group),
        "supplementalGroups": (
            f"{context}.?supplementalGroups.orValue([])",
            params.supplemental_groups,
        ),
    }
    for field, (ids, group) in groups.items():
        if group is not None:
            must = f"securityContext.{field}: must be within {format_ranges(group.allowed)}"
            rules.append(of_pod(f"{ids}.all(id, {within('id', group.allowed)})", must))
            if group.required:
                is_set = of_pod(f"{ids}.size() > 0", f"securityContext.{field}: must be set")
                rules += on_windows([is_set])
    return rules


def _volume_types(params: Any) -> list[CelRule]:
    keys = literal(["name", *params.allowed])
    typed = f"dyn(volume).all(key, key in {keys})"
    # A volume without a type is an emptyDir.
    has_type = "true" if "emptyDir" in params.allowed else "dyn(volume).size() > 1"
    test = f"variables.pod.?volumes.orValue([]).all(volume, {every([typed, has_type])})"
    return [of_pod(test, f"volumes: must be of type {', '.join(params.allowed) or 'none'}")]


# Without the exemptions of the policies. No rules: CEL cannot express the parameters.
CHECK_RULES: dict[str, Callable[[Any], list[CelRule]]] = {
    "app-armor": _app_armor,
    "capabilities": _capabilities,
    "host-namespaces": _host_namespaces,
    "host-path-volumes": _host_paths,
    "host-ports": _host_ports,
    "host-probes": _host_probes,
    "privilege-escalation": _privilege_escalation,
    "privileged-containers": _export_privileged,
    "proc-mount": _proc_mount,
    "run-as-non-root": _non_root,
    "run-as-user": _user,
    "seccomp-profiles": _seccomp,
    "selinux-options": _selinux,
    "sysctls": _sysctls,
    "volume-types": _volume_types,
    "windows-host-process": _host_process,
}


def pod_security(params: Any) -> list[CelRule]:
    """Return the rules of a level at a version; none if namespaces' labels decide the level."""
    version = str(params.version)
    minor = NEWEST if version == "latest" else int(version.partition(".")[2])
    restrictions = checks(str(params.level), minor, frozenset(params.excluded_checks))
    if params.namespace_labels is not None:
        return []
    if any(each.judge is seccomp_profiles.validate_annotations for each in restrictions):
        return []  # versions before 1.19
    rules = [rule for each in restrictions for rule in _rules(each)]
    if classes := params.exempt_runtime_classes:
        exempt = f"variables.pod.?runtimeClassName.orValue('') in {literal(list(classes))}"
        return unless(exempt, rules)
    return rules


def _rules(check: PodSecurityCheck) -> list[CelRule]:
    name = check.policy.name
    rules = CHECK_RULES[name](check.params)
    if hasattr(check.judge, "__wrapped__"):  # made by `unless`: some pods are exempt
        return on_windows(rules) if name in ON_WINDOWS else in_user_namespaces(rules)
    return rules
