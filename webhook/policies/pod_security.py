"""Pods keep to a level of the Pod Security Standards, as a version of Kubernetes defines it.

Why: the three levels (`privileged`, `baseline`, `restricted`) are what Kubernetes itself calls safe, and what charts
and operators are written for. Here every finding has its path, and workloads are denied when they are applied, not when
their pods fail to start.

Judged: what the checks of the level judge. Each check is a policy of its own, named at the end of a finding; its page
has the details. A newer version has more checks, or leaves pods alone that are safe otherwise: Windows pods since
1.25, pods in a user namespace (`hostUsers: false`) since 1.35.

Allowed: what the checks allow.
Denied:  `level: baseline`: `hostNetwork: true`; `level: restricted`: a container that does not drop ALL capabilities.
Fix: as each finding says; `security-defaults` sets what is merely unset.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/, https://kep.k8s.io/2579
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Annotated, Any, Literal

from pydantic import Field

from webhook.engine import NAMESPACE_LABELS, Params, Policy, Request, Violation
from webhook.policies import (
    app_armor,
    capabilities,
    host_namespaces,
    host_path_volumes,
    host_ports,
    host_probes,
    privilege_escalation,
    privileged_containers,
    proc_mount,
    run_as_non_root,
    run_as_user,
    seccomp_profiles,
    selinux_options,
    sysctls,
    volume_types,
    windows_host_process,
)

PRIVILEGED, BASELINE, RESTRICTED = LEVELS = ("privileged", "baseline", "restricted")
LABEL = "pod-security.kubernetes.io/"
LABEL_VERSION = re.compile(r"v1\.(0|[1-9][0-9]*)")

Judge = Callable[[Request, Any], Iterator[Violation]]
Level = Literal["privileged", "baseline", "restricted"]
CheckName = Literal[
    "app-armor", "capabilities", "host-namespaces", "host-path-volumes", "host-ports", "host-probes",
    "privilege-escalation", "privileged-containers", "proc-mount", "run-as-non-root", "run-as-user", "seccomp-profiles",
    "selinux-options", "sysctls", "volume-types", "windows-host-process",
]  # fmt: skip
Version = Annotated[str, Field(pattern=r"^(latest|v?1\.(0|[1-9][0-9]{0,3}))$")]


@dataclass(frozen=True, slots=True)
class Check:
    """One check: a policy, as a level has it from a version on, until a later row has the same policy otherwise."""

    level: str
    since: int  # minor version of Kubernetes
    policy: Policy
    params: Params
    judge: Judge
    replaces: str = ""  # a check of the level below that this one includes

    def violations(self, request: Request) -> Iterator[Violation]:
        """Yield what the check finds; the rule tells which check it is."""
        for violation in self.judge(request, self.params):
            yield replace(violation, rule=f"{violation.rule} ({self.level}: {self.policy.name})")


def _check(
    level: str, since: int, policy: Policy, /, replaces: str = "", judge: Judge | None = None, **params: Any
) -> Check:
    judge = judge or policy.validate
    assert judge is not None
    return Check(level, since, policy, policy.params(**params), judge, replaces)


_baseline, _restricted = partial(_check, BASELINE), partial(_check, RESTRICTED)
DEFAULT_CAPABILITIES = [
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
    "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
]  # fmt: skip

CHECKS = (
    _baseline(0, app_armor.POLICY),
    _baseline(0, capabilities.POLICY, required_drop=[], allowed=DEFAULT_CAPABILITIES, exempt_windows=False),
    _baseline(0, host_namespaces.POLICY),
    _baseline(0, host_path_volumes.POLICY),
    _baseline(0, host_ports.POLICY),
    _baseline(34, host_probes.POLICY),
    _baseline(0, privileged_containers.POLICY),
    _baseline(0, proc_mount.POLICY),
    _baseline(35, proc_mount.POLICY, exempt_user_namespaces=True),
    _baseline(0, seccomp_profiles.POLICY, judge=seccomp_profiles.validate_annotations),
    _baseline(19, seccomp_profiles.POLICY, required=False, exempt_windows=False),
    _baseline(0, selinux_options.POLICY, types=selinux_options.TYPES_1_0),
    _baseline(31, selinux_options.POLICY),
    _baseline(0, sysctls.POLICY, allowed=sysctls.SAFE_1_0),
    _baseline(27, sysctls.POLICY, allowed=sysctls.SAFE_1_27),
    _baseline(29, sysctls.POLICY, allowed=sysctls.SAFE_1_29),
    _baseline(32, sysctls.POLICY, allowed=sysctls.SAFE_1_32),
    _baseline(0, windows_host_process.POLICY),
    _restricted(22, capabilities.POLICY, exempt_windows=False),
    _restricted(25, capabilities.POLICY),
    _restricted(8, privilege_escalation.POLICY, exempt_windows=False),
    _restricted(25, privilege_escalation.POLICY),
    _restricted(35, proc_mount.POLICY),
    _restricted(0, run_as_non_root.POLICY, exempt_user_namespaces=False),
    _restricted(35, run_as_non_root.POLICY),
    _restricted(23, run_as_user.POLICY, exempt_user_namespaces=False),
    _restricted(35, run_as_user.POLICY),
    _restricted(19, seccomp_profiles.POLICY, exempt_windows=False),
    _restricted(25, seccomp_profiles.POLICY),
    _restricted(0, volume_types.POLICY, replaces=host_path_volumes.POLICY.name),
)
NEWEST = max(check.since for check in CHECKS)


@cache
def checks(level: str, minor: int, excluded: frozenset[str] = frozenset()) -> tuple[Check, ...]:
    """Return the checks of a level at a minor version, up to NEWEST: of each policy the last row that is in force."""
    in_force = {
        check.policy.name: check
        for check in CHECKS
        if check.policy.name not in excluded
        and check.since <= minor
        and LEVELS.index(check.level) <= LEVELS.index(level)
    }
    replaced = {check.replaces for check in in_force.values()}
    return tuple(check for name, check in in_force.items() if name not in replaced)


class PodSecurity(Params):
    """Which level of the Pod Security Standards pods must keep to, as which version of Kubernetes has it."""

    level: Level = Field("restricted", description="privileged, baseline or restricted")
    version: Version = Field("latest", description="version of Kubernetes that defines the level: 1.0 … or latest")
    namespace_labels: Literal["enforce", "audit", "warn"] | None = Field(
        None,
        description="take level and version from the namespace's labels pod-security.kubernetes.io/<this> and "
        "<this>-version; the parameters hold where it has none",
    )
    excluded_checks: list[CheckName] = Field([], description="checks that are left out, by the names of their policies")
    exempt_runtime_classes: list[str] = Field([], description="runtime classes whose pods are left alone")

    @cached_property
    def left_out(self) -> frozenset[str]:
        """The checks that are left out, as a set."""
        return frozenset(self.excluded_checks)

    def checks(self, request: Request) -> tuple[Check, ...]:
        """Return the checks that hold for a request."""
        level: str = self.level
        minor = _minor(self.version)
        if self.namespace_labels is not None:
            labels = request.lookup(NAMESPACE_LABELS)
            level, minor = level_and_version(labels, self.namespace_labels, level, minor)
        return checks(level, minor, self.left_out)


def level_and_version(labels: Mapping[str, str], mode: str, level: str, minor: int) -> tuple[str, int]:
    """Return the level and version that a namespace's labels ask for in one mode, as Kubernetes reads them.

    A level that is none stands for restricted where it is enforced, else for privileged; a version that is none stands
    for the latest. A namespace that enforces a stricter level than it would warn about is warned about that one.
    """
    enforced = labels.get(f"{LABEL}enforce")
    asked = labels.get(f"{LABEL}{mode}")
    version = labels.get(f"{LABEL}{mode}-version")
    if mode == "warn" and asked is None and enforced in LEVELS and LEVELS.index(enforced) > LEVELS.index(level):
        asked, version = enforced, version or labels.get(f"{LABEL}enforce-version")
    if asked is not None and asked not in LEVELS:
        asked = RESTRICTED if mode == "enforce" else PRIVILEGED
    return asked or level, minor if version is None else _minor(
        version if LABEL_VERSION.fullmatch(version) else "latest"
    )


def _minor(version: str) -> int:
    """Return the minor version, or NEWEST where nothing changed since."""
    return NEWEST if version == "latest" else min(int(version.partition(".")[2]), NEWEST)


def validate(request: Request, params: PodSecurity) -> Iterator[Violation]:
    """Yield what the checks of the level find."""
    pod = request.pod()
    if (
        pod is not None
        and params.exempt_runtime_classes
        and pod.string("runtimeClassName") in params.exempt_runtime_classes
    ):
        return
    for check in params.checks(request):
        yield from check.violations(request)


POLICY = Policy(
    "pod-security",
    PodSecurity,
    validate=validate,
    category="pod-security",
    severity="high",
    needs=(NAMESPACE_LABELS,),
)
