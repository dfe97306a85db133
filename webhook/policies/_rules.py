"""Compile the rules of a policy object: CEL with the meaning of ValidatingAdmissionPolicy."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ConfigDict

from config.api.policy import AdmissionPolicySpec
from config.api.rules import Validation
from config.faults import FaultsError
from webhook.cel import CelError, CompileError, Environment, Program
from webhook.cel.admission import ADMISSION, with_variable, without_params
from webhook.engine import Params, Policy, Request, Violation
from webhook.engine.kinds import Target
from webhook.engine.origins import value_at
from webhook.engine.request import NAMESPACE_LABELS
from webhook.engine.rules import Condition, RuleError, Rules
from webhook.engine.violation import UNSET
from webhook.policies._cel_request import activation
from webhook.policies._mutations import compile_mutations
from webhook.policies._rule_resources import resources_of

MAX_MESSAGE = 5 * 1024  # bytes of what a messageExpression returns; a longer one does not count


class RuleParams(Params):
    """The value of `params`: whatever the policy object says."""

    model_config = ConfigDict(extra="allow")


@dataclass(frozen=True)
class RulePolicy(Policy):
    """A policy with rules of its own, for the resources that its `match` names."""

    resources: tuple[Target, ...] = ()
    rules: tuple[str, ...] = ()  # as outputs list them

    @property
    def targets(self) -> tuple[Target, ...]:
        """The resources and subresources it judges."""
        return self.resources

    @property
    def documentation(self) -> str:
        """What outputs say of it: its rules are in its object."""
        return "\n".join(["Rules in CEL, written in the policy object.", "", *(f"- {each}" for each in self.rules)])


@dataclass(frozen=True, slots=True)
class Rule:
    """A compiled validation."""

    validation: Validation
    program: Program
    message: Program | None


@dataclass(frozen=True, slots=True)
class Expressions:
    """What all expressions of one policy share: their variables and what must be looked up."""

    environment: Environment
    variables: dict[str, Program]
    names_namespace: bool

    def values(self, request: Request, params: Any, object: Any = UNSET) -> Any:
        """Return what to evaluate with, about the request's object or another."""
        shown = request.object if object is UNSET else object
        labels = request.namespace_labels() if self.names_namespace and request.attributes.namespace else None
        return activation(self.environment, request, params, self.variables, shown, labels)


class Compiler:
    """Compiles the expressions of one policy object, and collects the faults."""

    def __init__(self, *, has_params: bool) -> None:
        self.environment = ADMISSION if has_params else without_params(ADMISSION)
        self.variables: dict[str, Program] = {}
        self.faults: list[tuple[str, str]] = []
        self.needs: frozenset[str] = frozenset()

    def compile(self, path: str, source: str, *results: str, environment: Environment | None = None) -> Program | None:
        """Return the program of one expression; None where it has a fault."""
        if "namespaceObject" in source:
            self.needs = frozenset({NAMESPACE_LABELS})
        try:
            return (environment or self.environment).compile(source, *results)
        except CompileError as error:
            self.faults.append((path, f"line {error.line}, column {error.column}: {error.text}"))
            return None

    def variable(self, path: str, name: str, source: str) -> None:
        """Compile a variable; those after it can read it."""
        program = self.compile(f"{path}.expression", source)
        if name in self.variables:
            self.faults.append((f"{path}.name", f'"{name}" is declared twice'))
        if program is not None:
            self.variables[name] = program
            self.environment = with_variable(self.environment, name, program.type)

    def with_structs(self) -> Environment:
        """Return the environment of mutations, which can name `Object{…}` and `JSONPatch{…}`."""
        return replace(self.environment, structs=True)

    def done(self) -> Expressions:
        """Return what the expressions share. FaultsError where one has a fault."""
        if self.faults:
            raise FaultsError(self.faults)
        return Expressions(self.environment, self.variables, bool(self.needs))


def compile_rules(spec: AdmissionPolicySpec, in_a_namespace: bool) -> Rules:
    """Compile the rules and conditions of a policy object. FaultsError names every fault with line and column."""
    faults: list[tuple[str, str]] = []
    resources, match = resources_of(faults, spec, in_a_namespace)
    rules = compile_expressions(spec, resources, bool(spec.params) or spec.policy is not None, faults)
    return replace(rules, match=match)


def compile_expressions(
    spec: AdmissionPolicySpec,
    resources: tuple[Target, ...],
    has_params: bool,
    faults: Sequence[tuple[str, str]] = (),
) -> Rules:
    """Compile expressions about some resources, whatever says where they apply. FaultsError as for `compile_rules`."""
    compiler = Compiler(has_params=has_params)
    conditions = [
        (each.name, compiler.compile(f"spec.matchConditions[{index}].expression", each.expression, "bool"))
        for index, each in enumerate(spec.match_conditions)
    ]
    for index, each in enumerate(spec.variables):
        compiler.variable(f"spec.variables[{index}]", each.name, each.expression)
    rules = [compile_rule(compiler, f"spec.validations[{index}]", each) for index, each in enumerate(spec.validations)]
    mutate = compile_mutations(compiler, spec.mutations) if spec.mutations else None
    compiler.faults += faults
    shared = compiler.done()
    condition = _condition(shared, [each for each in conditions if each[1] is not None], spec.params)
    if spec.policy is not None:
        return Rules(condition=condition, needs=compiler.needs)
    policy = RulePolicy(
        "rules in CEL",
        RuleParams,
        validate=validating([each for each in rules if each], shared, spec.failure_policy == "Fail") if rules else None,
        mutate=None if mutate is None else mutate(shared),
        category="custom",
        needs=tuple(compiler.needs),
        resources=resources,
        rules=tuple(map(_shown, spec.validations)) + tuple(f"{each.patch_type}" for each in spec.mutations),
    )
    return Rules(policy, RuleParams.model_validate(spec.params), condition=condition, needs=compiler.needs)


def _shown(validation: Validation) -> str:
    expression = " ".join(validation.expression.split())
    return f"{validation.message}: {expression}" if validation.message else expression


def compile_rule(compiler: Compiler, path: str, validation: Validation) -> Rule | None:
    """Compile one validation; None where it has a fault."""
    program = compiler.compile(f"{path}.expression", validation.expression, "bool")
    message = None
    if validation.message_expression is not None:
        message = compiler.compile(f"{path}.messageExpression", validation.message_expression, "string")
    if program is None or (validation.message_expression is not None and message is None):
        return None
    return Rule(validation, program, message)


def validating(
    rules: Sequence[Rule], shared: Expressions, fails_closed: bool
) -> Callable[[Request, RuleParams], Iterator[Violation]]:
    """Return the function that yields a violation for each rule that is false, or an error."""

    def validate(request: Request, params: RuleParams) -> Iterator[Violation]:
        values = shared.values(request, params.model_extra)
        for index, rule in enumerate(rules):
            try:
                if rule.program.evaluate(values) is True:
                    continue
            except CelError as error:
                if fails_closed:  # an error is never the same as before: its value is equal to nothing
                    text = f"expression '{rule.program.source}' resulted in error: {error}"
                    yield Violation("", "", text, "", value=object())
                continue
            yield _violation(request, rule, index, _message(rule, values))

    return validate


def _violation(request: Request, rule: Rule, index: int, message: str) -> Violation:
    path = rule.validation.path or ""
    value = value_at(request.value, path) if path else None
    found = "missing" if path and value is None else None if path else ""
    return Violation(path, found, message, "", value=value, id=f"validation {index}: {rule.program.source}")


def _message(rule: Rule, values: Any) -> str:
    text = ""
    if rule.message is not None:
        try:
            text = str(rule.message.evaluate(values)).strip()
        except CelError:
            text = ""
        if "\n" in text or len(text.encode()) > MAX_MESSAGE:
            text = ""
    return text or (rule.validation.message or "").strip() or f"failed expression: {rule.program.source.strip()}"


def _condition(shared: Expressions, conditions: Sequence[tuple[str, Any]], params: Any) -> Condition | None:
    """Return whether all conditions hold: one that is false decides, else an error is an error of the policy."""
    if not conditions:
        return None

    def holds(request: Request) -> bool:
        values, failed = shared.values(request, params), None
        for name, program in conditions:
            try:
                if program.evaluate(values) is False:
                    return False
            except CelError as error:
                failed = failed or RuleError(f"matchCondition {name}: {error}")
        if failed is not None:
            raise failed
        return True

    return holds
