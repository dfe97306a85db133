"""The checks of the Pod Security Standards: built-in policies, with their parameters."""

from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any, NamedTuple

from webhook.engine import Params, Policy, Request, Violation
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
from webhook.policies._security_contexts import in_user_namespace, unless

PRIVILEGED, BASELINE, RESTRICTED = LEVELS = ("privileged", "baseline", "restricted")


Judge = Callable[[Request, Any], Iterable[Violation]]


class PodSecurityCheck(NamedTuple):
    """One check: the policy of a level from a version on, until a later row replaces it."""

    level: str
    since: int  # minor version of Kubernetes
    policy: Policy
    params: Params
    # Without the policy's exemptions, if the check had none at that version.
    judge: Judge
    replaces: str = ""  # a check of the level below that this one includes


def _check(
    level: str,
    since: int,
    policy: Policy,
    replaces: str = "",
    judge: Judge | None = None,
    **params: Any,
) -> PodSecurityCheck:
    validate = judge or policy.validate
    assert validate is not None
    return PodSecurityCheck(level, since, policy, policy.params(**params), validate, replaces)


_baseline, _restricted = partial(_check, BASELINE), partial(_check, RESTRICTED)
DEFAULT_CAPABILITIES = [
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE",
    "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
]  # fmt: skip

CHECKS = (
    _baseline(0, app_armor.POLICY),
    _baseline(
        0,
        capabilities.POLICY,
        required_drop=[],
        allowed=DEFAULT_CAPABILITIES,
        judge=capabilities.validate,
    ),
    _baseline(0, host_namespaces.POLICY),
    _baseline(0, host_path_volumes.POLICY),
    _baseline(0, host_ports.POLICY),
    _baseline(34, host_probes.POLICY),
    _baseline(0, privileged_containers.POLICY),
    _baseline(0, proc_mount.POLICY),
    _baseline(35, proc_mount.POLICY, judge=unless(in_user_namespace, proc_mount.validate)),
    _baseline(0, seccomp_profiles.POLICY, judge=seccomp_profiles.validate_annotations),
    _baseline(19, seccomp_profiles.POLICY, required=False, judge=seccomp_profiles.validate),
    _baseline(0, selinux_options.POLICY, types=selinux_options.TYPES_1_0),
    _baseline(31, selinux_options.POLICY),
    _baseline(0, sysctls.POLICY, allowed=sysctls.SAFE_1_0),
    _baseline(27, sysctls.POLICY, allowed=sysctls.SAFE_1_27),
    _baseline(29, sysctls.POLICY, allowed=sysctls.SAFE_1_29),
    _baseline(32, sysctls.POLICY, allowed=sysctls.SAFE_1_32),
    _baseline(37, sysctls.POLICY, allowed=sysctls.SAFE_1_37),
    _baseline(0, windows_host_process.POLICY),
    _restricted(22, capabilities.POLICY, judge=capabilities.validate),
    _restricted(25, capabilities.POLICY),
    _restricted(8, privilege_escalation.POLICY, judge=privilege_escalation.validate),
    _restricted(25, privilege_escalation.POLICY),
    _restricted(35, proc_mount.POLICY),
    _restricted(0, run_as_non_root.POLICY, judge=run_as_non_root.validate),
    _restricted(35, run_as_non_root.POLICY),
    _restricted(23, run_as_user.POLICY, judge=run_as_user.validate),
    _restricted(35, run_as_user.POLICY),
    _restricted(19, seccomp_profiles.POLICY, judge=seccomp_profiles.validate),
    _restricted(25, seccomp_profiles.POLICY),
    _restricted(0, volume_types.POLICY, replaces=host_path_volumes.POLICY.name),
)
NEWEST = max(check.since for check in CHECKS)


@cache
def checks(
    level: str, minor: int, excluded: frozenset[str] = frozenset()
) -> tuple[PodSecurityCheck, ...]:
    """Return the checks of a level at a minor version: for each policy, the last row in force."""
    in_force = {
        check.policy.name: check
        for check in CHECKS
        if check.policy.name not in excluded
        and check.since <= minor
        and LEVELS.index(check.level) <= LEVELS.index(level)
    }
    replaced = {check.replaces for check in in_force.values()}
    return tuple(check for name, check in in_force.items() if name not in replaced)
