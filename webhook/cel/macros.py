"""The macros: `all`, `exists`, `map`, `filter` and their kin over lists and maps, `optMap` over optionals."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from webhook.cel.closures import decide
from webhook.cel.errors import BudgetError, EvaluationError, no_overload
from webhook.cel.functions import Code, Frame
from webhook.cel.types import DYN, INT, Signature, Type, parse_signatures
from webhook.cel.values import NONE, Optional, sorted_by, type_name

Rounds = Callable[[Frame], Iterator[Any]]  # binds the variables to one item after the other, and yields the first


class Macro(NamedTuple):
    """A macro: how many variables it binds, what it takes besides, and what it compiles to.

    In its signature, A and B are the types of the variables and R that of what it goes over.
    """

    variables: int
    signature: Signature
    build: Callable[[Rounds, Code], Code]

    @property
    def ranges(self) -> tuple[str, ...]:
        """The types that it goes over."""
        return {"optMap": ("optional_type",), "optFlatMap": ("optional_type",), "sortBy": ("list",)}.get(
            self.signature.name, ("list", "map")
        )

    def bound(self, target: Type) -> dict[str, Type]:
        """Return the types of the variables, as A and B."""
        first, second = (*target.params, DYN, DYN)[:2]
        if target.name == "list" and self.variables == 2:
            first, second = INT, first
        return {"A": first, "B": second}

    def code(self, target: Code, slots: tuple[int, ...], args: list[Code], weight: int) -> Code:
        """Return the closure of the macro over `target`, whose `args` cost `weight` a round."""
        pairs = _PAIRS.get(self.signature.name, _one_by_one if len(slots) == 1 else _with_keys)
        rounds = _rounds(target, slots, weight, pairs)
        return self.build(rounds if len(args) == 1 else _filtered(rounds, args[0]), args[-1])


def _rounds(
    target: Code, slots: tuple[int, ...], weight: int, pairs: Callable[[Any], Iterable[tuple[Any, Any]]]
) -> Rounds:
    one, two = slots[0], slots[-1]

    def rounds(frame: Frame) -> Iterator[Any]:
        meter = frame[0]
        for first, second in pairs(target(frame)):
            meter[0] -= weight
            if meter[0] < 0:
                raise BudgetError
            frame[one] = first
            frame[two] = second
            yield first

    return rounds


def _filtered(rounds: Rounds, kept: Code) -> Rounds:
    return lambda frame: (item for item in rounds(frame) if _truth(kept(frame)))


def _one_by_one(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, list | dict):
        return zip(value, value, strict=True)
    raise EvaluationError(f"got '{_go_type(value)}', expected iterable type")


def _with_keys(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, list | dict):
        return value.items() if isinstance(value, dict) else enumerate(value)
    raise EvaluationError(f"unsupported comprehension range type: {_go_type(value)}")


def _of_list(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, dict):
        raise no_overload("@sortByAssociatedKeys")
    return _one_by_one(value)


def _of_optional(value: Any) -> Iterable[tuple[Any, Any]]:
    if type(value) is not Optional:
        raise no_overload()
    return () if value is NONE else [(value.value, value.value)]


_PAIRS = {"sortBy": _of_list, "optMap": _of_optional, "optFlatMap": _of_optional}


def _go_type(value: Any) -> str:
    return "types.Null" if value is None else f"types.{type_name(value).rpartition('.')[2].title()}"


def _truth(value: Any) -> bool:
    if value is True or value is False:
        return value
    raise no_overload()


def _optional(value: Any) -> Optional:
    if type(value) is Optional:
        return value
    raise no_overload()


def _merged(maps: Iterator[Any]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for key, value in (entry for each in maps for entry in _with_keys(each)):
        if key in found:
            raise EvaluationError(f"insert failed: key {key} already exists")
        found[key] = value
    return found


_BUILDS: dict[str, Callable[[Rounds, Code], Code]] = {
    "all": lambda rounds, body: lambda frame: decide(frame, (body for _ in rounds(frame)), False),
    "exists": lambda rounds, body: lambda frame: decide(frame, (body for _ in rounds(frame)), True),
    "exists_one": lambda rounds, body: lambda frame: sum(_truth(body(frame)) for _ in rounds(frame)) == 1,
    "filter": lambda rounds, body: lambda frame: [item for item in rounds(frame) if _truth(body(frame))],
    "map": lambda rounds, body: lambda frame: [body(frame) for _ in rounds(frame)],
    "sortBy": lambda rounds, body: lambda frame: sorted_by([(body(frame), item) for item in rounds(frame)]),
    "transformMap": lambda rounds, body: lambda frame: {key: body(frame) for key in rounds(frame)},
    "transformMapEntry": lambda rounds, body: lambda frame: _merged(body(frame) for _ in rounds(frame)),
    "optMap": lambda rounds, body: lambda frame: next((Optional(body(frame)) for _ in rounds(frame)), NONE),
    "optFlatMap": lambda rounds, body: lambda frame: next((_optional(body(frame)) for _ in rounds(frame)), NONE),
}
_BUILDS |= {"existsOne": _BUILDS["exists_one"], "transformList": _BUILDS["map"]}
_SIGNATURES = {
    1: """all(bool) -> bool; exists(bool) -> bool; exists_one(bool) -> bool; existsOne(bool) -> bool;
        filter(bool) -> list(A); map(T) -> list(T); map(bool, T) -> list(T); sortBy(T) -> R;
        optMap(T) -> optional_type(T); optFlatMap(optional_type(T)) -> optional_type(T)""",
    2: """all(bool) -> bool; exists(bool) -> bool; exists_one(bool) -> bool; existsOne(bool) -> bool;
        transformList(T) -> list(T); transformList(bool, T) -> list(T);
        transformMap(T) -> map(A, T); transformMap(bool, T) -> map(A, T);
        transformMapEntry(map(K, V)) -> map(K, V); transformMapEntry(bool, map(K, V)) -> map(K, V)""",
}
MACROS = {  # by name and number of arguments, variables included
    (signature.name, count + len(signature.params) - 1): Macro(count, signature, _BUILDS[signature.name])
    for count, texts in _SIGNATURES.items()
    for text in texts.split(";")
    for signature in parse_signatures(f"(R).{text.strip()}")
}
