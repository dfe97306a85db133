"""Type-checks a policy object's CEL rules against the kinds that it matches, as Kubernetes does.

Without types, `object.spec.replica < 2` compiles, and denies every object with "no such key".

Source: k8s.io/apiserver/pkg/admission/plugin/policy/validating/typechecking.go.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from re import compile as pattern

from config.api.policy import AdmissionPolicySpec
from config.schemas import CustomTypes, fields_of, parse_type, root_type
from webhook.cel import CompileError, Environment, UndefinedFieldError, fields_read
from webhook.cel.admission_environment import ADMISSION, with_variable, without_params
from webhook.cel.types import DYN, Type
from webhook.engine.kinds import ANY_VERSION, Target
from webhook.policy_sets.expressions import describe

MAX_TYPES = 10  # as many as Kubernetes checks: a rule over every kind is checked quickly too
NAMED_KINDS = 3
SUBJECTS = ("object", "oldObject")
SCALE = "autoscaling/v1", "Scale"
# Subresources whose objects have the kind of the parent.
OF_THE_KIND = frozenset({"", "status", "ephemeralcontainers", "resize"})
# What an expression reads or calls to tell kinds apart, or fields that only some objects have.
KIND_FIELDS = frozenset(
    (variable, field)
    for variable, fields in {
        "object": ("kind", "apiVersion"),
        "oldObject": ("kind", "apiVersion"),
        "request": ("kind", "resource", "requestKind", "requestResource"),
    }.items()
    for field in fields
)
NAME_ENDS = pattern("[./]")  # names of types end with that of the kind
PRESENCE = pattern(r"\bhas\(|\.\?|\[\?")
SCALARS = {"string": "string", "integer": "int", "number": "double", "boolean": "bool"}

Place = tuple[str, int, int]  # the path of an expression; line and column in it
Errors = dict[Place, CompileError]


@dataclass(frozen=True, slots=True)
class RuleTypeFault:
    """A type error of one expression, and the kinds that it is about."""

    path: str  # of the expression in the policy object
    text: str
    kinds: tuple[str, ...]
    is_undefined: bool  # the expression reads a field that these kinds do not have
    is_of_all: bool  # these are all kinds of the policy

    @property
    def is_certain(self) -> bool:
        """Whether the rule cannot be right: no kind of the policy has the field."""
        return self.is_undefined and self.is_of_all

    @property
    def checked_kinds(self) -> str:
        """The kinds, for messages: at most three by name."""
        listed = ", ".join(self.kinds[:NAMED_KINDS])
        more = len(self.kinds) - NAMED_KINDS
        return f"checked against {listed}{f' and {more} more' if more > 0 else ''}"


def check_types(
    spec: AdmissionPolicySpec, targets: Iterable[Target], custom: CustomTypes | None = None
) -> list[RuleTypeFault]:
    """Return the type errors of the expressions of `spec` for the objects of `targets`.

    `custom` are the types of custom kinds that are known besides Gatewright's.

    Kinds without a known schema are not checked, and may have any field. A field that only some of
    the kinds have is no error of rules that look which kind, or which fields, an object has.
    """
    custom = custom or CustomTypes()
    names = list(islice(dict.fromkeys(_types(targets, custom)), MAX_TYPES + 1))
    types = [name for name in names if name is not None][:MAX_TYPES]
    has_params = bool(spec.params) or spec.policy is not None
    environment = ADMISSION if has_params else without_params(ADMISSION)
    errors = {name: _errors(spec, _with_type(environment, name, custom)) for name in types}
    places = dict.fromkeys(place for found in errors.values() for place in found)
    faults = [_fault(place, errors, len(names)) for place in places]
    if len(names) > 1 and any(map(_tells_kinds_apart, (source for _, source, _ in _all(spec)))):
        return [each for each in faults if each.is_of_all or not each.is_undefined]
    return faults


def _fault(place: Place, errors: Mapping[str, Errors], count: int) -> RuleTypeFault:
    """Return the fault at a place, from the errors by type; `count` types are matched."""
    here = {name: found[place] for name, found in errors.items() if place in found}
    return RuleTypeFault(
        path=place[0],
        text=describe(next(iter(here.values()))),
        kinds=tuple(dict.fromkeys(NAME_ENDS.split(name)[-1] for name in here)),
        is_undefined=all(isinstance(error, UndefinedFieldError) for error in here.values()),
        is_of_all=len(here) == count,
    )


def _tells_kinds_apart(source: str) -> bool:
    reads_kind = any(steps[:2] in KIND_FIELDS for steps in fields_read(source))
    return reads_kind or PRESENCE.search(source) is not None


def _all(spec: AdmissionPolicySpec) -> Iterator[tuple[str, str, str]]:
    """Yield path, source and variable name ("" for none) of each expression, in order of use."""
    for index, condition in enumerate(spec.match_conditions):
        yield f"spec.matchConditions[{index}].expression", condition.expression, ""
    for index, variable in enumerate(spec.variables):
        yield f"spec.variables[{index}].expression", variable.expression, variable.name
    for index, validation in enumerate(spec.validations):
        path = f"spec.validations[{index}]"
        yield f"{path}.expression", validation.expression, ""
        if validation.message_expression is not None:
            yield f"{path}.messageExpression", validation.message_expression, ""
    for index, mutation in enumerate(spec.mutations):
        path = f"spec.mutations[{index}]"
        if mutation.json_patch is not None:
            yield f"{path}.jsonPatch.expression", mutation.json_patch.expression, ""
        if mutation.apply_configuration is not None:
            yield (
                f"{path}.applyConfiguration.expression",
                mutation.apply_configuration.expression,
                "",
            )


def _types(targets: Iterable[Target], custom: CustomTypes) -> Iterator[str | None]:
    """Yield the name of the type of each version of each target; None if its schema is unknown."""
    for target in targets:
        for version in target.kind.versions:
            if target.subresource == "scale":
                yield root_type(*SCALE)
            elif target.subresource in OF_THE_KIND and version != ANY_VERSION:
                api_version, kind = f"{target.kind.group}/{version}".lstrip("/"), target.kind.kind
                yield root_type(api_version, kind) or custom.kinds.get(f"{api_version}/{kind}")
            else:
                yield None


def _errors(spec: AdmissionPolicySpec, environment: Environment) -> Errors:
    """Return the errors of all expressions in an environment with types."""
    errors: Errors = {}
    environment = replace(environment, structs=bool(spec.mutations))
    for path, source, variable in _all(spec):
        type_ = DYN
        try:
            type_ = environment.compile(source).type
        except CompileError as error:
            errors |= {(path, each.line, each.column): each for each in (error, *error.also)}
        if variable:
            environment = with_variable(environment, variable, type_)
    return errors


def _with_type(environment: Environment, name: str, custom: CustomTypes) -> Environment:
    """Return an environment where the objects have a type of config.schemas, or a custom one."""
    objects = _fields(name, custom.fields_of) if name in custom.types else _objects(name)
    return replace(
        environment,
        variables={**environment.variables, **dict.fromkeys(SUBJECTS, Type(name))},
        objects={**environment.objects, **objects},
    )


@lru_cache(maxsize=64)
def _objects(name: str) -> Mapping[str, Mapping[str, Type]]:
    return _fields(name, fields_of)


def _fields(
    name: str, fields_of: Callable[[str], Mapping[str, str]]
) -> Mapping[str, Mapping[str, Type]]:
    """Return the fields of a type, and of all types below it."""
    fields: dict[str, dict[str, Type]] = {}
    left = [name]
    while left:
        name = left.pop()
        if name not in fields:
            fields[name] = {field: _type(code, left) for field, code in fields_of(name).items()}
    return fields


def _type(code: str, structs: list[str]) -> Type:
    """Return the CEL type of a field's code; add the structs in it to `structs`."""
    shape, inner, _, _ = parse_type(code)
    if shape == "struct":
        structs.append(inner)
        return Type(inner)
    if shape == "list":
        return Type("list", (_type(inner, structs),))
    if shape == "map":
        return Type("map", (Type("string"), _type(inner, structs)))
    # Quantities, times and ports are strings or numbers.
    return Type(SCALARS[inner]) if inner in SCALARS else DYN
