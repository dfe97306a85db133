"""Static types such as `list(string)`, and signatures: `(string).charAt(int) -> string`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple


class Type(NamedTuple):
    """A type; a name of one capital letter is a type parameter."""

    name: str
    params: tuple["Type", ...] = ()

    def __str__(self) -> str:
        """Return the type as in CEL's messages."""
        inner = ", ".join(map(str, self.params))
        name = {"null_type": "null", "unknown": "dyn"}.get(self.name, self.name)
        return f"{name}({inner})" if inner else name

    @property
    def is_parameter(self) -> bool:
        """Whether it is a type parameter."""
        return len(self.name) == 1

    def may_be(self, *names: str) -> bool:
        """Return whether a value of this type can be one of the types `names`."""
        return self.name in {"dyn", "unknown", *names} or self.is_parameter


@dataclass(frozen=True, slots=True)
class Declarations:
    """Declared names: variables with their types, and object types with their fields.

    `structs` allows `Object{…}` and `JSONPatch{…}`.
    """

    variables: Mapping[str, Type]
    objects: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)
    structs: bool = False


class Signature(NamedTuple):
    """The signature of an overload: types of its arguments (the target first) and its result.

    The last argument of a variadic one can repeat.
    """

    name: str
    params: tuple[Type, ...]
    result: Type
    is_member: bool
    is_variadic: bool

    def types(self, count: int) -> tuple[Type, ...] | None:
        """Return the types of `count` arguments; None if it does not take this number."""
        if self.is_variadic and count > len(self.params):
            return self.params + self.params[-1:] * (count - len(self.params))
        return self.params if len(self.params) == count else None

    @property
    def takes(self) -> str:
        """Its argument types, for messages."""
        shown = format_arguments(self.params, is_member=self.is_member)
        return f"{shown[:-1]}...)" if self.is_variadic else shown


_ALIASES = {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}
_FAMILIES = {  # names in signatures that stand for several types
    "N": ("int", "uint", "double"),
    "M": ("int", "uint", "double"),
    "I": ("int", "uint"),
    "C": ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration"),
}
_SIGNATURE = re.compile(
    r"(?:\((?P<target>.+)\)\.(?=\w))?(?P<name>[^()]+)\((?P<params>.*)\) -> (?P<result>.+)"
)


@cache
def parse_type(text: str) -> Type:
    """Parse a type such as `map(string, list(A))`."""
    name, _, params = text.partition("(")
    return Type(_ALIASES.get(name, name), tuple(map(parse_type, _split(params[:-1]))))


def _split(text: str) -> list[str]:
    """Split at the commas outside parentheses."""
    parts, depth = [""], 0
    for character in text.replace(" ", ""):
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part]


DYN, BOOL, INT = map(parse_type, ("dyn", "bool", "int"))
# The type of the value of `optional.none()`, which is assignable to any type.
UNKNOWN = Type("unknown")


def parse_signatures(text: str) -> list[Signature]:
    """Parse signatures, separated by semicolons.

    N, M, I and C stand for several types, with one signature for each; `?` marks an optional
    argument, `...` one that can repeat.
    """
    return [signature for each in text.split(";") for signature in _versions(each.strip())]


def _versions(text: str) -> Iterable[Signature]:
    family = next((each for each in _FAMILIES if re.search(rf"\b{each}\b", text)), None)
    if family is not None:
        return parse_signatures(
            ";".join(re.sub(rf"\b{family}\b", type_, text) for type_ in _FAMILIES[family])
        )
    match = _SIGNATURE.fullmatch(text)
    assert match is not None, text
    params = [*([match["target"]] if match["target"] else []), *_split(match["params"])]
    types, result = [parse_type(each.strip("?.")) for each in params], parse_type(match["result"])
    return [
        Signature(
            match["name"],
            tuple(types[:count]),
            result,
            bool(match["target"]),
            match["params"].endswith("..."),
        )
        for count in range(sum(not each.startswith("?") for each in params), len(params) + 1)
    ]


def format_arguments(types: Sequence[Type], *, is_member: bool) -> str:
    """Return arguments of these types, for messages."""
    shown = ", ".join(map(str, types[1:] if is_member else types))
    return f"{types[0]}.({shown})" if is_member else f"({shown})"


def assignable(declared: Type, actual: Type, bound: dict[str, Type]) -> bool:
    """Return whether `actual` is assignable to `declared`; binds type parameters."""
    if declared.is_parameter:
        earlier = bound.setdefault(declared.name, actual)
        if not assignable(earlier, actual, bound) and not assignable(actual, earlier, bound):
            return False
        if actual == DYN or _is_unknown(earlier) or not assignable(earlier, actual, bound):
            bound[declared.name] = actual
        return True
    if {declared.name, actual.name} & {"dyn", "unknown"} or actual.is_parameter:
        return True
    if actual.name == "null_type" and (declared.name == "optional_type" or "." in declared.name):
        return True
    if declared.name == actual.name == "type":
        return True
    return (
        declared.name == actual.name
        and len(declared.params) == len(actual.params)
        and all(
            assignable(inner, given, bound)
            for inner, given in zip(declared.params, actual.params, strict=True)
        )
    )


def result_type(
    signatures: Iterable[Signature], types: Sequence[Type], bound: dict[str, Type]
) -> Type | None:
    """Return the result type for arguments of these types; None if no signature fits.

    It is dyn if several fit. `bound` has the type parameters that are already bound.
    """
    results = []
    for signature in signatures:
        declared, bindings = signature.types(len(types)), dict(bound)
        if declared is not None and all(
            assignable(*pair, bindings) for pair in zip(declared, types, strict=True)
        ):
            results.append(_substitute(signature.result, bindings))
    if not results:
        return None
    same = all(each == results[0] for each in results)
    return results[0] if same and (len(results) == 1 or not _is_unknown(results[0])) else DYN


def _is_unknown(type_: Type) -> bool:
    return type_ == UNKNOWN or any(map(_is_unknown, type_.params))


def _substitute(type_: Type, bound: dict[str, Type]) -> Type:
    if type_.is_parameter:
        return bound.get(type_.name, UNKNOWN)
    return Type(type_.name, tuple(_substitute(param, bound) for param in type_.params))


def can_stand_beside(first: Type, other: Type) -> bool:
    """Return whether a literal list with a first item of one type can have an item of another."""
    if first == other or UNKNOWN in (first, other):
        return True
    return bool(other.params) and other.name != "type" and assignable(first, other, {})
