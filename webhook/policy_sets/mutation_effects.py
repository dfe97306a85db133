"""Applying a mutating policy warns if it cannot work as written.

Why: of two policies that set a field to different values, only the earlier one is in force, and a
mutation of a field that updates cannot change makes every update of older objects fail: Jobs never
complete, and `kubectl label` is refused. Always in force.

Judged: policy objects that mutate. A conflict is one whose order decides the value of a field;
mutations of different fields, keys or list items fit together, and one that replaces or removes a
whole map or list conflicts with one that sets a part of it.

Allowed: always; with a warning if the policy would not be in force, or would break updates.
Denied:  nothing.
Fix: set the same value, or match different objects; for fields that updates cannot change, match
`operations: [CREATE]`.
"""

from collections.abc import Iterator
from dataclasses import replace

from config.faults import FaultsError
from webhook.engine import BoundPolicy, Params, Policy, Request, Violation, Violations
from webhook.engine.conflicts import IN_FORCE, ConflictingPoliciesError, refuse_conflict
from webhook.engine.kinds import KINDS, POLICY_KINDS
from webhook.engine.mutation_trials import set_by
from webhook.policy_sets.bound_objects import bind, document_of
from webhook.policy_sets.catalogue import catalogue

CREATED_ONLY = 'match only `operations: ["CREATE"]`'
# Fields of each kind that an update cannot change, and fields below them that it can; as the API
# server's validation has them.
FIXED: dict[tuple[str, str], tuple[tuple[str, ...], tuple[str, ...]]] = {
    ("", "Pod"): (("spec",), ("spec.activeDeadlineSeconds", "spec.tolerations")),
    ("", "PersistentVolumeClaim"): (
        ("spec",),
        ("spec.resources", "spec.volumeAttributesClassName"),
    ),
    ("batch", "Job"): (
        ("spec.template", "spec.selector", "spec.completionMode", "spec.podFailurePolicy"),
        (),
    ),
    ("apps", "StatefulSet"): (
        ("spec.serviceName", "spec.selector", "spec.podManagementPolicy"),
        (),
    ),
    ("apps", "Deployment"): (("spec.selector",), ()),
    ("apps", "DaemonSet"): (("spec.selector",), ()),
    ("apps", "ReplicaSet"): (("spec.selector",), ()),
    ("storage.k8s.io", "StorageClass"): (
        ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),
        (),
    ),
}


def validate(request: Request, params: Params) -> Violations:
    """Yield a violation for a conflict, and for each kind of which updates would fail."""
    try:
        policy = bind(document_of(request.value), catalogue())
    except FaultsError:
        return  # policy-objects denies it
    if not isinstance(policy, BoundPolicy) or policy.policy.mutate is None:
        return
    in_force: tuple[BoundPolicy, ...] = request.looked_up.get(IN_FORCE, ())
    try:
        refuse_conflict(policy, [each for each in in_force if each.title != policy.title])
    except ConflictingPoliciesError as error:
        first, *more = str(error).splitlines()
        found = f"{first}, and {len(more)} more" if more else first
        rule, fix = "this policy would not be in force", "set the same, or match other objects"
        yield Violation("spec", found, rule, fix)
    if request.mapping("spec").get("mutations"):
        yield from _fixed_fields(policy)


def _fixed_fields(policy: BoundPolicy) -> Iterator[Violation]:
    """Yield a violation for each kind of which the policy sets a field that updates cannot set."""
    updates = [
        replace(target, operations=("UPDATE",))
        for target in policy.targets
        if not target.subresource and "UPDATE" in target.operations
    ]
    updated = {target.kind for target in policy.match.select_targets(updates)}
    for key, (fixed, changeable) in FIXED.items():
        kind = KINDS[key]
        if not any((each.group, each.plural) == (kind.group, kind.plural) for each in updated):
            continue
        for path in {**set_by(policy, kind), **set_by(policy, kind, labelled=True)}:
            is_image = kind.kind == "Pod" and path.endswith("].image")
            if _is_below(path, fixed) and not _is_below(path, changeable) and not is_image:
                found = f"sets {kind.kind} {path}"
                rule = "updates cannot change it, so every update of an older object would fail"
                yield Violation("spec.mutations", found, rule, CREATED_ONLY)
                break


def _is_below(path: str, paths: tuple[str, ...]) -> bool:
    return any(path == each or path.startswith((f"{each}.", f"{each}[")) for each in paths)


POLICY = Policy(
    "mutation-effects",
    validate=validate,
    kinds=tuple(kind for kind in POLICY_KINDS if kind.kind == "ClusterAdmissionPolicy"),
    category="gatewright",
    severity="low",
    needs=(IN_FORCE,),
    always=True,
    action="Warn",
)
