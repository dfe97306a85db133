"""Static types such as `list(string)`, and signatures such as `(string).charAt(int) -> string`."""

import re
from functools import cache
from typing import NamedTuple


class Type(NamedTuple):
    """A type; one with a name of one capital letter is a type parameter."""

    name: str
    params: tuple["Type", ...] = ()

    def __str__(self) -> str:
        """As CEL's messages write it."""
        return f"{self.name}({', '.join(map(str, self.params))})" if self.params else _SHOWN.get(self.name, self.name)

    @property
    def is_parameter(self) -> bool:
        """Whether it stands for any type."""
        return len(self.name) == 1

    @property
    def short(self) -> str:
        """Its name without the package, quoted."""
        return f"'{self.name.rpartition('.')[2]}'"

    def may_be(self, name: str) -> bool:
        """Return whether a value of this type can be one of the type `name`."""
        return self.name in {name, "dyn"} or self.is_parameter


class Signature(NamedTuple):
    """One version of a function: name, types of the arguments (the target first), result, whether it has a target."""

    name: str
    params: tuple[Type, ...]
    result: Type
    is_member: bool

    @property
    def takes(self) -> str:
        """What it is applied to, as messages write it."""
        shown = ", ".join(map(str, self.params[1:] if self.is_member else self.params))
        return f"{self.params[0]}.({shown})" if self.is_member else f"({shown})"


_SHOWN = {"null_type": "null", "timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}
_NULLABLE = frozenset({"null_type", "timestamp", "duration", "optional_type"})
_SIGNATURE = re.compile(r"(?:\((?P<target>.+)\)\.(?=\w))?(?P<name>[^()]+)\((?P<params>.*)\) -> (?P<result>.+)")


@cache
def parse_type(text: str) -> Type:
    """Return the type that `text` says, such as `map(string, list(A))`."""
    name, _, params = text.partition("(")
    return Type(name, tuple(map(parse_type, _split(params[:-1]))))


def parse_signature(text: str) -> Signature:
    """Return the signature that `text` says."""
    match = _SIGNATURE.fullmatch(text)
    assert match is not None, text
    target = [match["target"]] if match["target"] else []
    params = tuple(map(parse_type, [*target, *_split(match["params"])]))
    return Signature(match["name"], params, parse_type(match["result"]), bool(target))


def _split(text: str) -> list[str]:
    """Return the parts between the commas that stand in no parentheses."""
    parts, depth = [""], 0
    for character in text.replace(" ", ""):
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part]


DYN, NULL, BOOL, INT, UINT, DOUBLE, STRING, BYTES = map(
    Type, ("dyn", "null_type", "bool", "int", "uint", "double", "string", "bytes")
)


def list_of(item: Type) -> Type:
    """Return the type of lists of `item`."""
    return Type("list", (item,))


def map_of(key: Type, value: Type) -> Type:
    """Return the type of maps from `key` to `value`."""
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    """Return the type of optional values."""
    return Type("optional_type", (value,))


def assignable(wanted: Type, found: Type, bound: dict[str, Type]) -> bool:
    """Return whether a value of type `found` can stand where `wanted` is declared; binds type parameters."""
    if wanted.is_parameter:
        known = bound.get(wanted.name)
        if known is None or known == DYN or assignable(known, found, bound):
            bound[wanted.name] = found if known is None else known
            return True
        if assignable(found, known, bound):
            bound[wanted.name] = found
            return True
        return False
    if wanted.name == "dyn" or found.name == "dyn" or found.is_parameter:
        return True
    if found.name == "null_type" and (wanted.name in _NULLABLE or "." in wanted.name):
        return True
    if wanted.name == found.name == "type":
        return True
    return (
        wanted.name == found.name
        and len(wanted.params) == len(found.params)
        and all(assignable(inner, given, bound) for inner, given in zip(wanted.params, found.params, strict=True))
    )


def substituted(type_: Type, bound: dict[str, Type]) -> Type:
    """Return `type_` with its parameters replaced by what they are bound to, or dyn."""
    if type_.is_parameter:
        return bound.get(type_.name, DYN)
    return Type(type_.name, tuple(substituted(param, bound) for param in type_.params)) if type_.params else type_


def joined(types: list[Type]) -> Type:
    """Return the type that all of `types` have, or dyn."""
    known = [each for each in types if each != DYN]
    if not known or len(known) < len(types):
        return DYN
    first = known[0]
    return first if all(assignable(first, each, {}) for each in known) else DYN
