"""Static types such as `list(string)`."""

from functools import cache
from typing import NamedTuple


class Type(NamedTuple):
    """A type; one with a name of one capital letter is a type parameter."""

    name: str
    params: tuple["Type", ...] = ()

    def __str__(self) -> str:
        """As CEL's messages write it."""
        inner = ", ".join(map(str, self.params))
        return "null" if self.name == "null_type" else f"{self.name}{f'({inner})' if inner else ''}"

    @property
    def is_parameter(self) -> bool:
        """Whether it stands for any type."""
        return len(self.name) == 1

    def may_be(self, *names: str) -> bool:
        """Return whether a value of this type can be one of the types `names`."""
        return self.name in {"dyn", *names} or self.is_parameter


_ALIASES = {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}


@cache
def parse_type(text: str) -> Type:
    """Return the type that `text` says, such as `map(string, list(A))`."""
    name, _, params = text.partition("(")
    return Type(_ALIASES.get(name, name), tuple(map(parse_type, split(params[:-1]))))


def split(text: str) -> list[str]:
    """Return the parts between the commas that stand in no parentheses."""
    parts, depth = [""], 0
    for character in text.replace(" ", ""):
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part]


DYN, BOOL, INT, STRING = map(Type, ("dyn", "bool", "int", "string"))


def assignable(wanted: Type, found: Type, bound: dict[str, Type]) -> bool:
    """Return whether a value of type `found` can stand where `wanted` is declared; binds type parameters."""
    if wanted.is_parameter:
        known = bound.setdefault(wanted.name, found)
        if not assignable(known, found, bound) and not assignable(found, known, bound):
            return False
        if found == DYN or not assignable(known, found, bound):
            bound[wanted.name] = found
        return True
    if wanted.name == "dyn" or found.name == "dyn" or found.is_parameter:
        return True
    if found.name == "null_type" and (wanted.name == "optional_type" or "." in wanted.name):
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
    if not types or DYN in types:
        return DYN
    return types[0] if all(assignable(types[0], each, {}) for each in types) else DYN
