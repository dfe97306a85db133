"""The macros: `all`, `exists`, `map`, `filter` and their kin over lists and maps, `optMap` over optionals."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from webhook.cel.closures import decide
from webhook.cel.errors import EvaluationError, no_overload
from webhook.cel.functions import Code, Frame, charge
from webhook.cel.types import DYN, INT, Signature, Type, parse_signatures
from webhook.cel.values import NONE, Optional, sorted_by, type_name

Rounds = Iterator[Any]  # the first variable of each round; the frame has all of them
Pairs = Callable[[Any], Iterable[tuple[Any, Any]]]  # the values of the variables, from what a macro goes over
Evaluate = Callable[[Rounds, Code, Frame], Any]


class Macro(NamedTuple):
    """A macro: how many variables it binds, and what it takes besides.

    In its signature, A and B are the types of the variables and R that of what it goes over.
    """

    variables: int
    signature: Signature

    @property
    def ranges(self) -> tuple[str, ...]:
        """The types that it goes over."""
        return _RANGES.get(self.signature.name, ("list", "map"))

    def bound(self, target: Type) -> dict[str, Type]:
        """Return the types of the variables, as A and B."""
        first, second = (*target.params, DYN, DYN)[:2]
        return {"A": INT, "B": first} if target.name == "list" and self.variables == 2 else {"A": first, "B": second}

    def code(self, target: Code, slots: tuple[int, ...], args: list[Code], weight: int) -> Code:
        """Return the closure of the macro over `target`, whose `args` cost `weight` a round."""
        one, two = slots[0], slots[-1]
        *condition, body = args
        pairs, evaluate = _PAIRS.get(self.ranges, _items if one == two else _entries), _EVALUATE[self.signature.name]

        def rounds(frame: Frame) -> Rounds:
            for first, second in pairs(target(frame)):
                charge(frame, weight)
                frame[one] = first
                frame[two] = second
                if not condition or _truth(condition[0](frame)):
                    yield first

        return lambda frame: evaluate(rounds(frame), body, frame)


def _items(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, list | dict):
        return zip(value, value, strict=True)
    raise EvaluationError(f"got '{_go_type(value)}', expected iterable type")


def _entries(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, list | dict):
        return value.items() if isinstance(value, dict) else enumerate(value)
    raise EvaluationError(f"unsupported comprehension range type: {_go_type(value)}")


def _go_type(value: Any) -> str:
    return "types.Null" if value is None else f"types.{type_name(value).rpartition('.')[2].title()}"


def _of_list(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, dict):
        raise no_overload("@sortByAssociatedKeys")
    return _items(value)


def _of_optional(value: Any) -> Iterable[tuple[Any, Any]]:
    return () if _optional(value) is NONE else [(value.value, value.value)]


_RANGES = {"sortBy": ("list",), "optMap": ("optional_type",), "optFlatMap": ("optional_type",)}
_PAIRS: dict[tuple[str, ...], Pairs] = {("list",): _of_list, ("optional_type",): _of_optional}


def _optional(value: Any) -> Optional:
    if type(value) is Optional:
        return value
    raise no_overload()


def _truth(value: Any) -> bool:
    if value is True or value is False:
        return value
    raise no_overload()


def _merged(maps: Iterator[Any]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for key, value in (entry for each in maps for entry in _entries(each)):
        if key in found:
            raise EvaluationError(f"insert failed: key {key} already exists")
        found[key] = value
    return found


_EVALUATE: dict[str, Evaluate] = {
    "all": lambda rounds, body, frame: decide(frame, (body for _ in rounds), False),
    "exists": lambda rounds, body, frame: decide(frame, (body for _ in rounds), True),
    "exists_one": lambda rounds, body, frame: sum(_truth(body(frame)) for _ in rounds) == 1,
    "filter": lambda rounds, body, frame: [item for item in rounds if _truth(body(frame))],
    "map": lambda rounds, body, frame: [body(frame) for _ in rounds],
    "sortBy": lambda rounds, body, frame: sorted_by([(body(frame), item) for item in rounds]),
    "transformMap": lambda rounds, body, frame: {key: body(frame) for key in rounds},
    "transformMapEntry": lambda rounds, body, frame: _merged(body(frame) for _ in rounds),
    "optMap": lambda rounds, body, frame: next((Optional(body(frame)) for _ in rounds), NONE),
    "optFlatMap": lambda rounds, body, frame: next((_optional(body(frame)) for _ in rounds), NONE),
}
_EVALUATE |= {"existsOne": _EVALUATE["exists_one"], "transformList": _EVALUATE["map"]}
_OF_BOTH = "(R).all(bool) -> bool; (R).exists(bool) -> bool; (R).exists_one(bool) -> bool; (R).existsOne(bool) -> bool;"
_ITEMS = """(R).filter(bool) -> list(A); (R).map(T) -> list(T); (R).map(bool, T) -> list(T); (R).sortBy(T) -> R;
    (R).optMap(T) -> optional_type(T); (R).optFlatMap(optional_type(T)) -> optional_type(T)"""
_ENTRIES = """(R).transformList(T) -> list(T); (R).transformList(bool, T) -> list(T);
    (R).transformMap(T) -> map(A, T); (R).transformMap(bool, T) -> map(A, T);
    (R).transformMapEntry(map(K, V)) -> map(K, V); (R).transformMapEntry(bool, map(K, V)) -> map(K, V)"""
MACROS = {  # by name and number of arguments, variables included
    (signature.name, variables + len(signature.params) - 1): Macro(variables, signature)
    for variables, texts in ((1, _OF_BOTH + _ITEMS), (2, _OF_BOTH + _ENTRIES))
    for signature in parse_signatures(texts)
}
