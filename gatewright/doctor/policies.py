"""Find policies that judge nothing, or only report."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from gatewright.doctor.hazards import CRITICAL, NOTE, WARNING, Hazard
from gatewright.doctor.models import ClusterBinding, ClusterObject, ClusterPolicy, ForeignPolicy
from gatewright.doctor.state import ADMISSION, ClusterState

LONG = timedelta(days=30)  # a policy that only reports for longer is not a trial
KYVERNO_EXCEPTION = "PolicyException"


def check(state: ClusterState, now: datetime) -> Iterator[Hazard]:
    """Yield a finding for each policy, binding and exception without its intended effect."""
    for sort in ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"):
        yield from _bound(sort, state, now)
    yield from _foreign(state, now)


def _bound(sort: str, state: ClusterState, now: datetime) -> Iterator[Hazard]:
    policies = {each.metadata.name: each for each in state.all(ClusterPolicy, sort)}
    bindings = state.all(ClusterBinding, f"{sort}Binding")
    knows_policies = state.knows(ADMISSION, sort)
    for binding in bindings:
        policy = policies.get(binding.spec.policy_name)
        if policy is None:
            if knows_policies:
                yield Hazard(
                    check="binding-without-policy",
                    subject=binding,
                    level=WARNING,
                    path="spec.policyName",
                    message=f"the policy {binding.spec.policy_name} does not exist, so this "
                    f"binding "
                    "enforces nothing",
                    fix="create the policy, or delete the binding",
                )
            continue
        yield from _params(policy, binding, state)
        denies = sort.startswith("Mutating") or "Deny" in binding.spec.validation_actions
        if not denies and _is_old(binding, now):
            actions = " and ".join(binding.spec.validation_actions)
            yield Hazard(
                check="never-denies",
                subject=binding,
                level=NOTE,
                path="spec.validationActions",
                message=f"{policy.metadata.name} denies nothing (validationActions {actions}), "
                f"for more than {LONG.days} days",
                fix="set validationActions to [Deny], or delete the binding",
            )
    if state.knows(ADMISSION, f"{sort}Binding"):
        bound = {each.spec.policy_name for each in bindings}
        for name, policy in policies.items():
            if name not in bound:
                yield Hazard(
                    check="policy-without-binding",
                    subject=policy,
                    level=WARNING,
                    message=f"no {sort}Binding names {name}, so it judges nothing",
                    fix="create a binding, or delete the policy",
                )


def _params(
    policy: ClusterPolicy, binding: ClusterBinding, state: ClusterState
) -> Iterator[Hazard]:
    kind, reference = policy.spec.param_kind, binding.spec.param_ref
    if kind is None:
        return
    if reference is None:
        yield Hazard(
            check="params",
            subject=binding,
            level=CRITICAL if policy.spec.failure_policy == "Fail" else WARNING,
            path="spec.paramRef",
            message=f"{policy.metadata.name} has parameters of kind {kind.kind}, and this binding "
            "names none: each expression that reads `params` fails",
            fix="set spec.paramRef",
        )
        return
    group = kind.api_version.rpartition("/")[0]
    if not reference.name or not reference.namespace or not state.knows(group, kind.kind):
        return
    if state.find(group, kind.kind, reference.namespace, reference.name) is None:
        denies = reference.parameter_not_found_action == "Deny"
        effect = "every request that it matches is refused" if denies else "it judges nothing"
        yield Hazard(
            check="params",
            subject=binding,
            level=CRITICAL if denies and policy.spec.failure_policy == "Fail" else WARNING,
            path="spec.paramRef",
            message=f"{kind.kind} {reference.namespace}/{reference.name} does not exist, and "
            f"parameterNotFoundAction is {reference.parameter_not_found_action}: {effect}",
            fix="create it, or correct spec.paramRef",
        )


def _foreign(state: ClusterState, now: datetime) -> Iterator[Hazard]:
    foreign = list(state.foreign())
    names = {each.metadata.name for each in foreign if each.kind.endswith("Policy")}
    for each in foreign:
        if each.kind == KYVERNO_EXCEPTION and "exceptions" in each.spec:
            yield from _unused(each, names)
        elif (mode := _mode(each)) and _is_old(each, now):
            yield Hazard(
                check="never-denies",
                subject=each,
                level=NOTE,
                message=f"it denies nothing ({mode}), for more than {LONG.days} days",
                fix="enforce it, or delete it",
            )


def _mode(each: ForeignPolicy) -> str:
    """Return the setting that makes a policy only report; "" if it enforces."""
    if each.api_version.startswith("constraints.gatekeeper.sh/"):
        action = each.spec.get("enforcementAction", "deny")
        return f"enforcementAction {action}" if action in ("dryrun", "warn") else ""
    if each.kind in ("ClusterPolicy", "Policy") and "kyverno.io" in each.api_version:
        rules = each.spec.get("rules")
        validates = isinstance(rules, list) and any(
            isinstance(rule, dict) and "validate" in rule for rule in rules
        )
        action = str(each.spec.get("validationFailureAction", "Audit"))
        own = "failureAction" in str(rules)
        return (
            f"validationFailureAction {action}"
            if validates and not own and (action.lower() == "audit")
            else ""
        )
    if each.api_version.startswith("gatewright.io/") and each.spec.get("action") in (
        "Warn",
        "Audit",
    ):
        return f"action {each.spec['action']}"
    return ""


def _unused(each: ForeignPolicy, policies: set[str]) -> Iterator[Hazard]:
    exceptions = each.spec.get("exceptions")
    for entry in exceptions if isinstance(exceptions, list) else ():
        name = (
            str(entry.get("policyName", "")).rpartition("/")[2] if isinstance(entry, dict) else ""
        )
        if name and policies and name not in policies:
            yield Hazard(
                check="unused-exception",
                subject=each,
                level=NOTE,
                path="spec.exceptions",
                message=f"it exempts from the policy {name}, which does not exist",
                fix="delete it, or correct the name",
            )


def _is_old(each: ClusterObject, now: datetime) -> bool:
    created = each.metadata.creation_timestamp
    return created is not None and now - created > LONG
