"""The CEL expressions of one policy: compiled together, and evaluated for a request and its parameters."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from config.api.admission import AuditAnnotation, KubernetesPolicySpec
from config.api.policy import AdmissionPolicySpec
from config.api.rules import Mutation, Validation, Variable
from config.faults import FaultsError
from webhook.cel import CelError, CompileError, Environment, Program
from webhook.cel.admission import ADMISSION, with_variable, without_params
from webhook.engine import Patch, Request, Violation
from webhook.engine.origins import value_at
from webhook.engine.request import NAMESPACE
from webhook.engine.rules import RuleError
from webhook.policies._cel_request import OPTIONAL, activation
from webhook.policies._mutations import changed, differences

Spec = AdmissionPolicySpec | KubernetesPolicySpec
MAX_MESSAGE = 5 * 1024  # bytes of what a messageExpression returns; a longer one does not count


@dataclass(frozen=True, slots=True)
class Rule:
    """A compiled validation."""

    validation: Validation
    program: Program
    message: Program | None

    def worded(self, values: Any) -> str:
        """Return the message of a violation."""
        text = ""
        if self.message is not None:
            try:
                text = str(self.message.evaluate(values)).strip()
            except CelError:
                text = ""
            if "\n" in text or len(text.encode()) > MAX_MESSAGE:
                text = ""
        return text or (self.validation.message or "").strip() or f"failed expression: {self.program.source.strip()}"


@dataclass
class Expressions:
    """Compile expressions with `add`, then ask `done`; evaluate them after that. Faults are collected."""

    environment: Environment
    fails_closed: bool
    variables: dict[str, Program] = field(default_factory=dict)
    conditions: list[tuple[str, Program]] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    mutations: list[tuple[str, Program]] = field(default_factory=list)
    annotations: list[tuple[str, Program]] = field(default_factory=list)
    names: set[str] = field(default_factory=set)  # of OPTIONAL, which some expression reads
    faults: list[tuple[str, str]] = field(default_factory=list)

    def compile(self, path: str, source: str, *results: str, structs: bool = False) -> Program | None:
        """Return the program of one expression; None where it has a fault."""
        self.names |= {name for name in OPTIONAL if name in source}
        environment = replace(self.environment, structs=True) if structs else self.environment
        try:
            return environment.compile(source, *results)
        except CompileError as error:
            self.faults.append((path, f"line {error.line}, column {error.column}: {error.text}"))
            return None

    def add_variable(self, path: str, variable: Variable) -> None:
        """Compile a variable; those after it can read it."""
        program = self.compile(f"{path}.expression", variable.expression)
        if variable.name in self.variables:
            self.faults.append((f"{path}.name", f'"{variable.name}" is declared twice'))
        if program is not None:
            self.variables[variable.name] = program
            self.environment = with_variable(self.environment, variable.name, program.type)

    def add_rule(self, path: str, validation: Validation) -> None:
        """Compile a validation."""
        program, message = self.compile(f"{path}.expression", validation.expression, "bool"), None
        if validation.message_expression is not None:
            message = self.compile(f"{path}.messageExpression", validation.message_expression, "string")
        if program is not None:
            self.rules.append(Rule(validation, program, message))

    def add_mutation(self, path: str, mutation: Mutation) -> None:
        """Compile a mutation."""
        is_patch = mutation.patch_type == "JSONPatch"
        expression = mutation.json_patch if is_patch else mutation.apply_configuration
        path = f"{path}.{'jsonPatch' if is_patch else 'applyConfiguration'}"
        if expression is None or (mutation.json_patch and mutation.apply_configuration):
            self.faults.append((path, f"patchType {mutation.patch_type} needs this, and nothing else"))
            return
        result = "list(JSONPatch)" if is_patch else "Object"
        program = self.compile(f"{path}.expression", expression.expression, result, structs=True)
        if program is not None:
            self.mutations.append((mutation.patch_type, program))

    @property
    def needs(self) -> frozenset[str]:
        """What must be looked up before a request is judged."""
        return frozenset({NAMESPACE} if "namespaceObject" in self.names else ())

    def values(self, request: Request, params: Any, object: Any) -> Any:
        """Return what to evaluate with; `object` is the request's, or what mutations made of it."""
        return activation(self.environment, request, params, self.variables, object, self.names)

    def apply(self, request: Request, params: Any) -> bool:
        """Return whether all conditions hold: one that is false decides, else an error is an error of the policy."""
        if not self.conditions:
            return True
        values, failed = self.values(request, params, request.object), None
        for name, program in self.conditions:
            try:
                if program.evaluate(values) is False:
                    return False
            except CelError as error:
                failed = failed or RuleError(f"matchCondition {name}: {error}")
        if failed is not None:
            raise failed
        return True

    def violations(self, request: Request, params: Any) -> Iterator[Violation]:
        """Yield a violation for each rule that is false, and where they fail closed for each error."""
        values = self.values(request, params, request.object)
        for index, rule in enumerate(self.rules):
            try:
                if rule.program.evaluate(values) is True:
                    continue
            except CelError as error:
                if self.fails_closed:
                    yield _failed(f"expression '{rule.program.source}' resulted in error: {error}")
                continue
            path = rule.validation.path or ""
            value = value_at(request.value, path) if path else None
            found = "missing" if path and value is None else None if path else ""
            id = f"validation {index}: {rule.program.source}"
            yield Violation(path, found, rule.worded(values), "", value=value, id=id)
        for key, program in self.annotations if self.fails_closed else ():
            try:
                program.evaluate(values)
            except CelError as error:
                yield _failed(f"audit annotation {key}: expression '{program.source}' resulted in error: {error}")

    def annotated(self, request: Request, params: Any) -> Iterator[tuple[str, str]]:
        """Yield the audit annotations that have a value."""
        values = self.values(request, params, request.object)
        for key, program in self.annotations:
            try:
                value = program.evaluate(values)
            except CelError:
                continue  # a violation, where errors count
            if value is not None and value.strip():
                yield key, value.strip()

    def patches(self, request: Request, params: Any) -> Iterator[Patch]:
        """Yield what the mutations change, each of which sees the result of the one before."""
        object = request.value
        for sort, program in self.mutations:
            try:
                object = changed(object, program.evaluate(self.values(request, params, object)), sort)
            except CelError as error:
                raise RuleError(f"mutation '{program.source}' failed: {error}") from None
        yield from differences(request.value, object)


def compile_expressions(
    spec: Spec, *, has_params: bool, faults: Sequence[tuple[str, str]] = (), annotations: Sequence[AuditAnnotation] = ()
) -> Expressions:
    """Compile the expressions of a policy. FaultsError names every fault with line and column, after the `faults`."""
    found = Expressions(
        ADMISSION if has_params else without_params(ADMISSION), fails_closed=spec.failure_policy == "Fail"
    )
    for index, condition in enumerate(spec.match_conditions):
        program = found.compile(f"spec.matchConditions[{index}].expression", condition.expression, "bool")
        if program is not None:
            found.conditions.append((condition.name, program))
    for index, variable in enumerate(spec.variables):
        found.add_variable(f"spec.variables[{index}]", variable)
    for index, validation in enumerate(spec.validations):
        found.add_rule(f"spec.validations[{index}]", validation)
    for index, mutation in enumerate(spec.mutations):
        found.add_mutation(f"spec.mutations[{index}]", mutation)
    for index, annotation in enumerate(annotations):
        path = f"spec.auditAnnotations[{index}].valueExpression"
        program = found.compile(path, annotation.value_expression, "string", "null")
        if program is not None:
            found.annotations.append((annotation.key, program))
    if found.faults or faults:
        raise FaultsError([*found.faults, *faults])
    return found


def _failed(text: str) -> Violation:
    return Violation("", "", text, "", value=object())  # never the same as before: its value is equal to nothing
