"""Find policies that judge nothing, or only report."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from gatewright.doctor.hazards import CRITICAL, NOTE, WARNING, Hazard
from gatewright.doctor.models import ClusterBinding, ClusterObject, ClusterPolicy, ForeignPolicy
from gatewright.doctor.state import ADMISSION, ClusterState
from kube.resource import group_version

LONG = timedelta(days=30)  # a policy that only reports for longer is not a trial


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
                    "binding-without-policy",
                    WARNING,
                    binding,
                    "spec.policyName",
                    f"the policy {binding.spec.policy_name} does not exist, so this binding "
                    "enforces nothing",
                    "create the policy, or delete the binding",
                )
            continue
        yield from _params(policy, binding, state)
        denies = sort.startswith("Mutating") or "Deny" in binding.spec.validation_actions
        if not denies and _is_old(binding, now):
            actions = " and ".join(binding.spec.validation_actions)
            yield Hazard(
                "never-denies",
                NOTE,
                binding,
                "spec.validationActions",
                f"{policy.metadata.name} denies nothing (validationActions {actions}), "
                f"for more than {LONG.days} days",
                "set validationActions to [Deny], or delete the binding",
            )
    if state.knows(ADMISSION, f"{sort}Binding"):
        bound = {each.spec.policy_name for each in bindings}
        for name, policy in policies.items():
            if name not in bound:
                yield Hazard(
                    "policy-without-binding",
                    WARNING,
                    policy,
                    "",
                    f"no {sort}Binding names {name}, so it judges nothing",
                    "create a binding, or delete the policy",
                )


def _params(
    policy: ClusterPolicy, binding: ClusterBinding, state: ClusterState
) -> Iterator[Hazard]:
    kind, reference = policy.spec.param_kind, binding.spec.param_ref
    if kind is None:
        return
    if reference is None:
        yield Hazard(
            "params",
            CRITICAL if policy.spec.failure_policy == "Fail" else WARNING,
            binding,
            "spec.paramRef",
            f"{policy.metadata.name} has parameters of kind {kind.kind}, and this binding "
            "names none: each expression that reads `params` fails",
            "set spec.paramRef",
        )
        return
    group, _ = group_version(kind.api_version)
    if not reference.name or not reference.namespace or not state.knows(group, kind.kind):
        return
    if state.find(group, kind.kind, reference.namespace, reference.name) is None:
        denies = reference.parameter_not_found_action == "Deny"
        effect = "every request that it matches is refused" if denies else "it judges nothing"
        yield Hazard(
            "params",
            CRITICAL if denies and policy.spec.failure_policy == "Fail" else WARNING,
            binding,
            "spec.paramRef",
            f"{kind.kind} {reference.namespace}/{reference.name} does not exist, and "
            f"parameterNotFoundAction is {reference.parameter_not_found_action}: {effect}",
            "create it, or correct spec.paramRef",
        )


def _foreign(state: ClusterState, now: datetime) -> Iterator[Hazard]:
    foreign = list(state.foreign())
    policies = {each.metadata.name for each in foreign if each.kind.endswith("Policy")}
    for each in foreign:
        for name in _excepted(each) if state.is_live and policies else ():
            if name not in policies:
                yield Hazard(
                    "unused-exception",
                    NOTE,
                    each,
                    "spec",
                    f"it exempts from the policy {name}, which does not exist",
                    "delete it, or correct the name",
                )
        if (mode := _mode(each)) and _is_old(each, now):
            yield Hazard(
                "never-denies",
                NOTE,
                each,
                "",
                f"it denies nothing ({mode}), for more than {LONG.days} days",
                "enforce it, or delete it",
            )


def _mode(each: ForeignPolicy) -> str:
    """Return the setting that makes a policy only report; "" if it enforces."""
    if each.api_version.startswith("constraints.gatekeeper.sh/"):
        action = each.spec.get("enforcementAction", "deny")
        return f"enforcementAction {action}" if action in ("dryrun", "warn") else ""
    # Kyverno's policies in CEL, and Gatewright's
    actions = each.spec.get("validationActions")
    if isinstance(actions, list) and actions and "Deny" not in actions:
        return f"validationActions {' and '.join(map(str, actions))}"
    if each.api_version.startswith("kyverno.io/") and each.kind in ("ClusterPolicy", "Policy"):
        default = each.spec.get("validationFailureAction", "Audit")
        rules = [rule.get("validate") for rule in _maps(each.spec.get("rules"))]
        found = [rule.get("failureAction", default) for rule in _maps(rules)]
        if found and all(str(action).lower() == "audit" for action in found):
            return "failureAction Audit"
    return ""


def _excepted(each: ForeignPolicy) -> Iterator[str]:
    """Yield the policies that an exception names, in any of the three APIs that have them."""
    if each.kind != "PolicyException":
        return
    for field in ("exceptions", "policyRefs"):
        for entry in _maps(each.spec.get(field)):
            name = entry.get("policyName") or entry.get("policy") or entry.get("name")
            if isinstance(name, str):
                yield name.rpartition("/")[2]


def _maps(values: object) -> list[dict[str, object]]:
    """Return the maps of a list, whatever it is: other tools' objects have no model here."""
    return [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []


def _is_old(each: ClusterObject, now: datetime) -> bool:
    created = each.metadata.creation_timestamp
    return created is not None and now - created > LONG
