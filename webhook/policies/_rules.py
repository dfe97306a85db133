"""Compile the rules of a policy object: CEL with the meaning of ValidatingAdmissionPolicy."""

from dataclasses import dataclass

from pydantic import ConfigDict

from config.api.policy import AdmissionPolicySpec
from webhook.engine import Params, Policy, Request
from webhook.engine.kinds import Target
from webhook.engine.rules import Rules
from webhook.policies._expressions import Expressions, Spec
from webhook.policies._rule_resources import resources_of

NAME, CATEGORY = "rules in CEL", "custom"


class RuleParams(Params):
    """The value of `params`: whatever the policy object says."""

    model_config = ConfigDict(extra="allow")


@dataclass(frozen=True)
class RulePolicy(Policy):
    """A policy with rules of its own, for the resources that its `match` names."""

    resources: tuple[Target, ...] = ()
    rules: tuple[str, ...] = ()  # as outputs list them
    judges_owned = True

    @property
    def targets(self) -> tuple[Target, ...]:
        """The resources and subresources it judges."""
        return self.resources

    @property
    def documentation(self) -> str:
        """What outputs say of it: its rules are in its object."""
        return "\n".join(["Rules in CEL, written in the policy object.", "", *(f"- {each}" for each in self.rules)])


def compile_rules(spec: AdmissionPolicySpec, in_a_namespace: bool) -> Rules:
    """Compile the rules and conditions of a policy object. FaultsError names every fault with line and column."""
    faults: list[tuple[str, str]] = []
    resources, match = resources_of(faults, spec, in_a_namespace)
    found = Expressions(spec, has_params=bool(spec.params) or spec.policy is not None, faults=faults)

    def applies(request: Request) -> bool:
        return found.apply(request, spec.params)

    condition = applies if found.conditions else None
    if spec.policy is not None:
        return Rules(match=match, condition=condition, needs=found.needs)
    policy = RulePolicy(
        NAME,
        RuleParams,
        validate=(lambda request, params: found.violations(request, params.model_extra)) if found.rules else None,
        mutate=(lambda request, params: found.patches(request, params.model_extra)) if found.mutations else None,
        category=CATEGORY,
        needs=tuple(found.needs),
        resources=resources,
        rules=shown(spec),
    )
    return Rules(policy, RuleParams.model_validate(spec.params), match, condition, found.needs)


def shown(spec: Spec) -> tuple[str, ...]:
    """Return the rules as outputs list them."""
    rules = ((each.message, " ".join(each.expression.split())) for each in spec.validations)
    texts = (f"{message}: {expression}" if message else expression for message, expression in rules)
    return (*texts, *(str(each.patch_type) for each in spec.mutations))
