"""Pods meet a level of the Pod Security Standards, as a version of Kubernetes defines it.

Why: charts and operators are written for the three levels of Kubernetes (`privileged`, `baseline`,
`restricted`). Unlike Pod Security Admission, this policy reports a path for every violation, and
denies workloads when they are applied, not when their pods are created.

Judged: the fields that the checks of the level judge. Each check is a policy, named at the end of
each violation; its page has the details. A newer version has more checks, or exempts pods that are
safe for another reason: Windows pods since 1.25, pods in a user namespace (`hostUsers: false`)
since 1.35.

Allowed: pods that pass every check.
Denied:  `level: baseline`: `hostNetwork: true`; `level: restricted`: a container that does not drop
ALL capabilities.
Fix: each violation names its fix; `security-defaults` sets unset fields.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/, https://kep.k8s.io/2579
"""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from webhook.engine import NAMESPACE_LABELS, Params, Policy, Request, Violations
from webhook.policies._pod_security_checks import LEVELS, NEWEST, PRIVILEGED, RESTRICTED, checks

LABEL = "pod-security.kubernetes.io/"
LABEL_VERSION = re.compile(r"v1\.(0|[1-9][0-9]*)")

PodSecurityLevel = Literal["privileged", "baseline", "restricted"]
CheckName = Literal[
    "app-armor", "capabilities", "host-namespaces", "host-path-volumes", "host-ports",
    "host-probes", "privilege-escalation", "privileged-containers", "proc-mount", "run-as-non-root",
    "run-as-user", "seccomp-profiles", "selinux-options", "sysctls", "volume-types",
    "windows-host-process",
]  # fmt: skip


def _require_known(version: str) -> str:
    if version != "latest" and int(version.partition(".")[2]) > NEWEST:
        raise ValueError(f"is unknown: the newest version is 1.{NEWEST}; use latest, or upgrade")
    return version


PodSecurityVersion = Annotated[
    str,
    Field(pattern=r"^(latest|v?1\.(0|[1-9][0-9]{0,3}))$"),
    AfterValidator(_require_known),
]


class PodSecurity(Params):
    """Which level of the Pod Security Standards pods must meet, and its Kubernetes version."""

    level: PodSecurityLevel = Field("restricted", description="privileged, baseline or restricted")
    version: PodSecurityVersion = Field(
        "latest", description="version of Kubernetes that defines the level: 1.0 … or latest"
    )
    namespace_labels: Literal["enforce", "audit", "warn"] | None = Field(
        None,
        description="read level and version from these labels of the namespace, "
        "pod-security.kubernetes.io/enforce and so on; default: the parameters",
    )
    excluded_checks: list[CheckName] = Field(
        [], description="checks that are skipped, by the names of their policies"
    )
    exempt_runtime_classes: list[str] = Field(
        [], description="runtime classes whose pods are skipped"
    )


def level_and_version(
    labels: Mapping[str, str], mode: str, level: str, minor: int
) -> tuple[str, int]:
    """Return the level and version that a namespace's labels set for one mode.

    An invalid level means restricted for enforce, and privileged for the other modes; an invalid
    version means latest. Without a level to warn about, a namespace that enforces a stricter level
    than the default warns about that one.
    """
    enforced = labels.get(f"{LABEL}enforce")
    labelled = labels.get(f"{LABEL}{mode}")
    version = labels.get(f"{LABEL}{mode}-version")
    is_stricter = enforced in LEVELS and LEVELS.index(enforced) > LEVELS.index(level)
    if mode == "warn" and labelled is None and is_stricter:
        labelled, version = enforced, version or labels.get(f"{LABEL}enforce-version")
    if labelled is not None and labelled not in LEVELS:
        labelled = RESTRICTED if mode == "enforce" else PRIVILEGED
    if version is not None:
        minor = _minor(version if LABEL_VERSION.fullmatch(version) else "latest")
    return labelled or level, minor


def _minor(version: str) -> int:
    """Return the minor version; NEWEST for a label with a later one, as the API server does."""
    return NEWEST if version == "latest" else min(int(version.partition(".")[2]), NEWEST)


def validate(request: Request, params: PodSecurity) -> Violations:
    """Yield the violations of each check of the level; the rule names the check."""
    pod = request.pod()
    if pod is not None and pod.string("runtimeClassName") in params.exempt_runtime_classes:
        return
    level, minor = str(params.level), _minor(params.version)
    if params.namespace_labels is not None:
        labels = request.lookup(NAMESPACE_LABELS)
        level, minor = level_and_version(labels, params.namespace_labels, level, minor)
    for check in checks(level, minor, frozenset(params.excluded_checks)):
        for violation in check.judge(request, check.params):
            violation.rule = f"{violation.rule} ({check.level}: {check.policy.name})"
            violation.check = check.policy.name
            yield violation


POLICY = Policy(
    "pod-security",
    PodSecurity,
    validate=validate,
    category="pod-security",
    severity="high",
    needs=lambda params: () if params.namespace_labels is None else (NAMESPACE_LABELS,),
)
