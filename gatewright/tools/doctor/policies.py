"""Find policies that judge nothing, or only report."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from config.api.match import LabelSelector
from gatewright.tools.doctor.foreign import ForeignPolicy
from gatewright.tools.doctor.hazards import CRITICAL, NOTE, WARNING, Hazard
from gatewright.tools.doctor.models import ClusterBinding, ClusterObject, ClusterPolicy
from gatewright.tools.doctor.state import ADMISSION, ClusterState
from kube.resource import group_version, title
from webhook.engine.match import compile_selector

LONG = timedelta(days=30)  # a policy that only reports for longer is not a trial


def check(state: ClusterState, now: datetime) -> Iterator[Hazard]:
    """Yield a finding for each policy, binding and exception without its intended effect."""
    policies = {(each.kind, each.metadata.name): each for each in state.all(ClusterPolicy)}
    for binding in state.all(ClusterBinding):
        yield from _bind(binding, policies, state, now)
    bound = {_policy_key(each) for each in state.all(ClusterBinding)}
    for key, policy in policies.items():
        kind, name = key
        if key not in bound and state.knows(ADMISSION, f"{kind}Binding"):
            yield Hazard(
                "policy-without-binding",
                WARNING,
                policy,
                "",
                f"no {kind}Binding names {name}, so it judges nothing",
                "create a binding, or delete the policy",
            )
    yield from _foreign(state, now)


def _policy_key(binding: ClusterBinding) -> tuple[str, str]:
    return binding.kind.removesuffix("Binding"), binding.spec.policy_name


def _bind(
    binding: ClusterBinding,
    policies: Mapping[tuple[str, str], ClusterPolicy],
    state: ClusterState,
    now: datetime,
) -> Iterator[Hazard]:
    kind, name = _policy_key(binding)
    policy = policies.get((kind, name))
    if policy is not None:
        yield from _params(policy, binding, state)
    elif state.knows(ADMISSION, kind):
        yield Hazard(
            "binding-without-policy",
            WARNING,
            binding,
            "spec.policyName",
            f"the policy {name} does not exist, so this binding enforces nothing",
            "create the policy, or delete the binding",
        )
    actions = binding.spec.validation_actions
    denies = kind.startswith("Mutating") or "Deny" in actions
    if policy is not None and not denies and _is_old(binding, now):
        yield Hazard(
            "never-denies",
            NOTE,
            binding,
            "spec.validationActions",
            f"{name} denies nothing (validationActions {' and '.join(actions)}), for more than "
            f"{LONG.days} days",
            "set validationActions to [Deny], or delete the binding",
        )


def _params(
    policy: ClusterPolicy, binding: ClusterBinding, state: ClusterState
) -> Iterator[Hazard]:
    kind, reference = policy.spec.param_kind, binding.spec.param_ref
    if kind is None:
        return
    if reference is None:
        message = (
            f"{policy.metadata.name} has parameters of kind {kind.kind}, and this binding names "
            "none: each expression that reads `params` fails"
        )
        yield _lost_params(policy, binding, message, "set spec.paramRef")
        return
    group, _ = group_version(kind.api_version)
    selects = compile_selector(reference.selector or LabelSelector())
    if state.knows(group, kind.kind) and not any(
        reference.name in ("", candidate.metadata.name)
        and reference.namespace in ("", candidate.metadata.namespace)
        and selects(candidate.metadata.labels)
        for candidate in state.of_kind(group, kind.kind)
    ):
        action = reference.parameter_not_found_action
        effect = (
            "every request that it matches is refused" if action == "Deny" else "it judges nothing"
        )
        named = reference.name or "that spec.paramRef.selector selects"
        message = (
            f"{title(kind.kind, reference.namespace, named)} does not exist, and "
            f"parameterNotFoundAction is {action}: {effect}"
        )
        fix = "create it, or correct spec.paramRef"
        yield _lost_params(policy, binding, message, fix, refuses=action == "Deny")


def _lost_params(
    policy: ClusterPolicy, binding: ClusterBinding, message: str, fix: str, *, refuses: bool = True
) -> Hazard:
    level = CRITICAL if refuses and policy.spec.failure_policy == "Fail" else WARNING
    return Hazard("params", level, binding, "spec.paramRef", message, fix)


def _foreign(state: ClusterState, now: datetime) -> Iterator[Hazard]:
    foreign = state.all(ForeignPolicy)
    policies = {each.metadata.name for each in foreign if each.kind.endswith("Policy")}
    unread = {group for group, _ in state.unread}
    for exception in foreign:
        is_known = state.is_live and group_version(exception.api_version)[0] not in unread
        for name in _find_excepted(exception) if is_known and policies else ():
            if name not in policies:
                yield Hazard(
                    "unused-exception",
                    NOTE,
                    exception,
                    "spec",
                    f"it exempts from the policy {name}, which does not exist",
                    "delete it, or correct the name",
                )
        if any((one.type, one.status) == ("Narrow", "False") for one in exception.conditions):
            yield Hazard(
                "widened-registration",
                WARNING,
                exception,
                "spec.match",
                "requests from more namespaces than it selects are sent to Gatewright's webhook, "
                "and are denied while no webhook answers",
                "select namespaces by name, or by values of one label",
            )
        if (mode := _mode(exception)) and _is_old(exception, now):
            yield Hazard(
                "never-denies",
                NOTE,
                exception,
                "",
                f"it denies nothing ({mode}), for more than {LONG.days} days",
                "enforce it, or delete it",
            )


def _mode(each: ForeignPolicy) -> str:
    """Return the setting that makes a policy only report; "" if it enforces."""
    if each.api_version.startswith("constraints.gatekeeper.sh/"):
        action = each.enforcement_action
        return f"enforcementAction {action}" if action in ("dryrun", "warn") else ""
    # Kyverno's policies in CEL, and Gatewright's
    if each.validation_actions and "Deny" not in each.validation_actions:
        return f"validationActions {' and '.join(each.validation_actions)}"
    actions = {
        action.lower()
        for rule in each.rules
        if rule.validation is not None
        for action in (
            rule.action or each.failure_action,
            *(override.action for override in rule.overrides or each.overrides),
        )
    }
    return "failureAction Audit" if actions == {"audit"} else ""


def _find_excepted(each: ForeignPolicy) -> Iterator[str]:
    """Yield the policies that an exception names.

    Gatewright's controller also knows policies that are no objects: those of files and the chart.
    """
    valid = ("Ready", "InForce"), ("Ready", "Expired")
    is_valid = any((condition.type, condition.reason) in valid for condition in each.conditions)
    if each.kind == "PolicyException" and not is_valid:
        names = (policy.name for policy in (*each.exceptions, *each.policy_refs))
        yield from (name.rpartition("/")[2] for name in names if name)


def _is_old(each: ClusterObject, now: datetime) -> bool:
    created = each.metadata.creation_timestamp
    return created is not None and now - created > LONG
