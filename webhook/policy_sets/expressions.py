"""The CEL expressions of one policy: compiled together, evaluated for a request."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from config.api.admission import KubernetesPolicySpec
from config.api.policy import AdmissionPolicySpec
from config.api.rules import Mutation, Validation
from config.faults import FaultsError
from webhook.cel import (
    BUDGET,
    CelError,
    CompileError,
    Frame,
    Meter,
    Program,
    Steps,
    Variables,
    field_named,
    fields_read,
)
from webhook.cel.admission_environment import ADMISSION, AUTHORIZER, with_variable, without_params
from webhook.engine import Patch, Request, Violation
from webhook.engine.policy import RuleError, SkippedMutationError
from webhook.engine.request import NAMESPACE
from webhook.policy_sets.cel_request import admission_request, fill_defaults, namespace_object
from webhook.policy_sets.mutations import apply_mutation, differences, type_of, without_defaults
from webhook.policy_sets.validations import CompiledValidation, is_of_sender

Spec = AdmissionPolicySpec | KubernetesPolicySpec


class Expressions:
    """The compiled expressions of a policy."""

    def __init__(
        self,
        spec: Spec,
        *,
        has_params: bool,
        faults: Sequence[tuple[str, str]] = (),
        is_of_tenant: bool = False,
        budget: int | None = None,
    ) -> None:
        """Compile all expressions.

        Raises FaultsError with line and column of every fault, followed by the other `faults` of
        the policy.

        The policies of a tenant share one budget for each request, however many there are.
        """
        self.fails_closed = spec.failure_policy == "Fail"
        self._is_of_tenant, self._budget = is_of_tenant, budget or BUDGET
        self._environment = ADMISSION if has_params else without_params(ADMISSION)
        self._faults: list[tuple[str, str]] = []
        self._reads: set[str] = set()  # names of expensive variables that some expression reads
        self._variables: dict[str, Program] = {}
        self._read: dict[
            str, set[Steps]
        ] = {}  # fields that each variable reads, also through other variables
        self._aliases: dict[str, Steps] = {}  # the field that a variable is, if it is one
        annotations = spec.audit_annotations if isinstance(spec, KubernetesPolicySpec) else []
        self.conditions: list[tuple[str, Program]] = []
        self.annotations: list[tuple[str, Program]] = []
        for index, condition in enumerate(spec.match_conditions):
            path = f"spec.matchConditions[{index}].expression"
            self.conditions.append(
                (condition.name, self._program(path, condition.expression, "bool"))
            )
        names = [each.name for each in spec.match_conditions]
        for index, name in enumerate(names):
            if name in names[:index]:
                text = f'"{name}" is the name of another condition'
                self._faults.append((f"spec.matchConditions[{index}].name", text))
        for index, variable in enumerate(spec.variables):
            program = self._program(f"spec.variables[{index}].expression", variable.expression)
            self._variables[variable.name] = program
            self._read[variable.name] = self._read_by(program)
            if field := field_named(program.source):
                self._aliases[variable.name] = self._resolve(field)
            self._environment = with_variable(self._environment, variable.name, program.type)
        self.rules = [
            self._rule(f"spec.validations[{index}]", validation)
            for index, validation in enumerate(spec.validations)
        ]
        for index, annotation in enumerate(annotations):
            path = f"spec.auditAnnotations[{index}].valueExpression"
            program = self._program(path, annotation.value_expression, "string", "null")
            self.annotations.append((annotation.key, program))
        # Only mutations can construct objects, as in the API server.
        self._environment = replace(self._environment, structs=True)
        self.mutations = [
            self._mutation(f"spec.mutations[{index}]", mutation)
            for index, mutation in enumerate(spec.mutations)
        ]
        if self._faults or faults:
            raise FaultsError([*self._faults, *faults])

    def _program(self, path: str, source: str, *results: str) -> Program:
        """Return the program of an expression; of an invalid one, record the fault."""
        self._reads |= {
            name for name in ("oldObject", "request", "namespaceObject") if name in source
        }
        try:
            return self._environment.compile(source, *results)
        except CompileError as error:
            self._faults += ((path, describe(each)) for each in (error, *error.also))
            return self._environment.compile("dyn(null)")

    def _rule(self, path: str, validation: Validation) -> CompiledValidation:
        program, message = self._program(f"{path}.expression", validation.expression, "bool"), None
        if validation.message_expression is not None:
            path = f"{path}.messageExpression"
            message = self._program(path, validation.message_expression, "string")
        read = self._read_by(program)
        own = sorted(steps[1:] for steps in read if steps[0] == "object")
        is_about_object = bool(own) and not any(map(is_of_sender, read))
        return CompiledValidation(validation, program, message, tuple(own), is_about_object)

    def _read_by(self, program: Program) -> set[Steps]:
        """Return the fields that a program reads, also through variables."""
        read = set(map(self._resolve, fields_read(program.source)))
        named = {steps[1:2] for steps in read if steps[0] == "variables"}
        by_name = self._read if () in named else {name for (name,) in named}
        return read.union(*(self._read[name] for name in by_name))

    def _resolve(self, steps: Steps) -> Steps:
        """Return the field that steps name, through a variable that is a field."""
        if steps[0] == "variables" and steps[1:2] and steps[1] in self._aliases:
            return (*self._aliases[steps[1]], *steps[2:])
        return steps

    @property
    def depends_on_sender(self) -> bool:
        """Whether a condition depends on the sender, and so may differ for the old object."""
        read = (steps for _, program in self.conditions for steps in self._read_by(program))
        return any(steps[0] != "oldObject" and is_of_sender(steps) for steps in read)

    def _mutation(self, path: str, mutation: Mutation) -> tuple[str, Program]:
        is_patch = mutation.patch_type == "JSONPatch"
        expression = mutation.json_patch if is_patch else mutation.apply_configuration
        path = f"{path}.{'jsonPatch' if is_patch else 'applyConfiguration'}"
        if expression is None or (mutation.json_patch and mutation.apply_configuration):
            text = f"patchType {mutation.patch_type} needs this, and nothing else"
            self._faults.append((path, text))
            return mutation.patch_type, self._program(path, "null")
        result = "list(JSONPatch)" if is_patch else "Object"
        program = self._program(f"{path}.expression", expression.expression, result)
        return mutation.patch_type, program

    @property
    def needs(self) -> frozenset[str]:
        """The look-ups that the expressions need."""
        return frozenset({NAMESPACE} if "namespaceObject" in self._reads else ())

    def values(self, request: Request, params: Any, object: Any) -> Frame:
        """Return the CEL variables with a cost budget.

        `object` is a parameter since mutations change it.
        """
        variables, reads = Variables(self._variables), self._reads
        values = {
            "object": object,
            "oldObject": fill_defaults(request)[1] if "oldObject" in reads else None,
            "request": admission_request(request) if "request" in reads else None,
            "params": params,
            "namespaceObject": namespace_object(request) if "namespaceObject" in reads else None,
            "authorizer": AUTHORIZER,
            "variables": variables,
        }
        if self._is_of_tenant and request.budget is None:
            request.budget = Meter()
        meter = request.budget if self._is_of_tenant else Meter(self._budget)
        variables.activation = self._environment.activation(values, meter)
        return variables.activation

    def apply(self, request: Request, params: Any) -> bool:
        """Return whether all conditions hold; a false one takes precedence over an error."""
        if not self.conditions:
            return True
        values, failed = self.values(request, params, fill_defaults(request)[0]), None
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
        """Yield a violation for each false rule, and for each error if the policy fails closed."""
        object, old_object = fill_defaults(request)
        values = self.values(request, params, object)
        for rule in self.rules:
            try:
                if rule.program.evaluate(values) is True:
                    continue
            except CelError as error:
                if self.fails_closed:
                    yield _failure(f"expression '{rule.program.source}' resulted in error: {error}")
                continue
            yield rule.violation(object if object is not None else old_object or {}, values)
        for key, program in self.annotations if self.fails_closed else ():
            try:
                program.evaluate(values)
            except CelError as error:
                expression = f"expression '{program.source}' resulted in error: {error}"
                yield _failure(f"audit annotation {key}: {expression}")

    def audit_annotations(self, request: Request, params: Any) -> Iterator[tuple[str, str]]:
        """Yield the audit annotations that have a value."""
        values = self.values(request, params, fill_defaults(request)[0])
        for key, program in self.annotations:
            try:
                value = program.evaluate(values)
            except CelError:
                continue  # `violations` reports the error
            if value is not None and value.strip():
                yield key, value.strip()

    def patches(self, request: Request, params: Any) -> Iterator[Patch]:
        """Yield the patches of the mutations, each applied to the result of the previous one.

        With failurePolicy Ignore, one that fails is skipped, and raised as SkippedMutationError
        after the patches of the others.
        """
        object = fill_defaults(request)[0] or {}
        type, custom = type_of(request)
        failed: RuleError | None = None
        for patch_type, program in self.mutations:
            try:
                value = program.evaluate(self.values(request, params, object))
                object = apply_mutation(object, value, patch_type, type, custom)
            except (CelError, RuleError) as error:
                is_own = isinstance(error, RuleError)
                text = str(error) if is_own else f"mutation '{program.source}' failed: {error}"
                if self.fails_closed:
                    raise RuleError(text) from None
                failed = failed or SkippedMutationError(text)
        old = fill_defaults(request)[0] or {}
        for patch in differences(old, object):
            is_sent = old is request.object  # with the API's defaults, by the API server
            yield patch if is_sent else without_defaults(patch, old, request.object)
        if failed is not None:
            raise failed


def describe(error: CompileError) -> str:
    """Return an error of compilation with its place in the expression."""
    return f"line {error.line}, column {error.column}: {error.text}"


def _failure(text: str) -> Violation:
    # Never tolerated as an existing violation: its value equals no other.
    return Violation("", "", text, "", value=object())
