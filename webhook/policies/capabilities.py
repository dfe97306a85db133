"""Containers drop root's capabilities, and add only approved ones.

Why: with the runtime's default set, root in a container can change owners, forge packets and create
devices. Most programs need none of these capabilities.

Judged: all containers, but not those of Windows pods, which have no capabilities. Names are
compared in the API's spelling: `NET_RAW`, not `CAP_NET_RAW` or `net_raw`.

Allowed: `capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}`.
Denied:  `add: [SYS_ADMIN]`; no `drop`, where `required_drop` is not empty.
Fix: drop the required capabilities; remove added ones that are not allowed.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
"""

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from webhook.engine import Fix, Params, Policy, Request, Violations
from webhook.engine.violation import shown
from webhook.policies._security_contexts import is_windows, unless

ALL = "ALL"
ADD, DROP = "securityContext.capabilities.add", "securityContext.capabilities.drop"


def _spell(capability: str) -> str:
    if capability.startswith("CAP_"):
        raise ValueError(
            f"expected {capability.removeprefix('CAP_')}: the API spells capabilities without CAP_"
        )
    return capability


Capability = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$"), AfterValidator(_spell)]


class NotDropped(frozenset[str]):
    """The dropped capabilities, ordered as an excess: fewer drops are more excess."""

    def __le__(self, other: Any) -> bool:
        return ALL in self or frozenset.__ge__(self, other)


class CapabilityParams(Params):
    """Which capabilities containers may add and must drop."""

    allowed: list[Capability] = Field(
        ["NET_BIND_SERVICE"],
        description="capabilities that may be added, without CAP_; ALL allows every one",
    )
    required_drop: list[Capability] = Field(
        [ALL],
        description="capabilities that must be dropped; a container that drops ALL drops each",
    )


def validate(request: Request, params: CapabilityParams) -> Violations:
    """Yield a violation for each capability that is not allowed, or that is not dropped."""
    for container in request.containers():
        added, dropped = container.strings(ADD), container.strings(DROP)
        missing = [
            capability
            for capability in params.required_drop
            if capability not in dropped and ALL not in dropped
        ]
        if missing:
            rule = f"containers must drop {', '.join(params.required_drop)}"
            fix = f"add {', '.join(missing)} to it"
            found = ", ".join(map(shown, dropped)) or "nothing is dropped"
            violation = container.violation(DROP, dropped, rule, fix, found=found)
            violation.excess, violation.fix_value = NotDropped(dropped), [*dropped, *missing]
            yield violation
        if not added or ALL in params.allowed:
            continue
        kept = [each for each in added if each in params.allowed] or None
        for capability in added:
            if capability not in params.allowed:
                rule = f"containers may add {', '.join(params.allowed) or 'no capability'}"
                yield container.violation(ADD, capability, rule, "remove it", fix_value=kept)


POLICY = Policy(
    "capabilities",
    CapabilityParams,
    validate=unless(is_windows, validate),
    category="pod-security",
    severity="high",
    fix=Fix(False, "a program that needs one of the capabilities fails"),
)
