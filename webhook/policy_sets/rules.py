"""Policies made of CEL rules, for policy objects and for Kubernetes' own admission policies."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import ConfigDict

from config.api.policy import AdmissionPolicySpec
from config.schemas import root_type
from webhook.engine import SCHEMAS, Params, Policy, Request
from webhook.engine.kinds import Target
from webhook.policy_sets.compiled_rules import Rules
from webhook.policy_sets.expressions import Expressions, Spec
from webhook.policy_sets.rule_resources import resources_of

ParamsOf = Callable[[Request, Any], Iterable[Any]]


class RuleParams(Params):
    """The value of `params`: any fields, taken from the policy object."""

    model_config = ConfigDict(extra="allow")


@dataclass(frozen=True)
class RulePolicy(Policy):
    """A policy with its own rules, for the resources that its `match` names."""

    resources: tuple[Target, ...] = ()
    rules: tuple[str, ...] = ()  # as shown in outputs
    sources: tuple[str, ...] = ()  # the expressions of conditions, variables and validations
    judges_owned = True

    @property
    def targets(self) -> tuple[Target, ...]:
        """The resources and subresources that it judges."""
        return self.resources

    @property
    def judges_containers(self) -> bool:
        """Always false: the result of an expression is about the whole object."""
        return False

    @cached_property
    def documentation(self) -> str:
        """The text about it in outputs: a list of its rules."""
        title = "Rules in CEL, written in the policy object."
        return "\n".join([title, "", *(f"- {each}" for each in self.rules)])


def rule_policy(
    spec: Spec, found: Expressions, resources: tuple[Target, ...], params_of: ParamsOf
) -> RulePolicy:
    """Return a policy that evaluates compiled expressions once for each of the parameters.

    `params_of` returns these from the request and the parameters of the policy object.
    """

    def with_each(judge: ParamsOf) -> ParamsOf:
        return lambda request, params: (
            violation for value in params_of(request, params) for violation in judge(request, value)
        )

    conditions = [each.expression for each in spec.match_conditions]
    variables = [each.expression for each in spec.variables]
    validations = [each.expression for each in spec.validations]
    return RulePolicy(
        "rules in CEL",
        RuleParams,
        validate=with_each(found.violations) if found.rules or found.annotations else None,
        mutate=with_each(found.patches) if found.mutations else None,
        annotate=with_each(found.audit_annotations) if found.annotations else None,
        category="custom",
        needs=(*found.needs, *_schemas(found, resources)),
        resources=resources,
        rules=tuple(_listed_fields(spec)),
        sources=(*conditions, *variables, *validations),
    )


def _schemas(found: Expressions, resources: Iterable[Target]) -> Iterator[str]:
    """Yield the look-up of custom types if a mutation changes objects of custom kinds."""
    kinds = dict.fromkeys(each.kind for each in resources) if found.mutations else ()
    if any(root_type(kind.resource.api_version, kind.kind) is None for kind in kinds):
        yield SCHEMAS


def _listed_fields(spec: Spec) -> Iterator[str]:
    for validation in spec.validations:
        expression = " ".join(validation.expression.split())
        yield f"{validation.message}: {expression}" if validation.message else expression
    yield from (each.patch_type for each in spec.mutations)


def compile_rules(spec: AdmissionPolicySpec, namespace: str | None, *, stored: bool) -> Rules:
    """Compile a policy object's rules and conditions. Raises FaultsError with all faults.

    `namespace` is that of a tenant's policy; `stored` is as for `bind`.
    """
    faults: list[tuple[str, str]] = []
    has_rules, is_of_tenant = spec.policy is None, namespace is not None
    named = resources_of(faults, spec, namespace, stored=stored) if has_rules else ((), spec.match)
    resources, match = named
    has_params = bool(spec.params) or not has_rules
    expressions = Expressions(spec, has_params=has_params, faults=faults, is_of_tenant=is_of_tenant)
    condition = (
        (lambda request: expressions.apply(request, spec.params))
        if expressions.conditions
        else None
    )
    if not has_rules:
        return Rules(
            condition=condition,
            needs=expressions.needs,
            depends_on_sender=expressions.depends_on_sender,
        )
    policy = rule_policy(spec, expressions, resources, lambda _, params: (params.model_extra,))
    params = RuleParams.model_validate(spec.params)
    return Rules(policy, params, match, condition, expressions.needs, expressions.depends_on_sender)
