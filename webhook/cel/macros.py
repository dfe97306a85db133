"""The macros over lists and maps (`all`, `exists`, `map`, `filter` …) and optionals."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from webhook.cel.closures import decide, truth
from webhook.cel.errors import EvaluationError, no_overload
from webhook.cel.functions import Code, Frame
from webhook.cel.types import DYN, INT, Signature, Type, parse_signatures
from webhook.cel.values import NONE, Optional, brief, sorted_by, type_name

Rounds = Iterator[Any]  # yields the first variable of each round; the frame has all variables
# Returns the values of the variables for each item that a macro visits.
Pairs = Callable[[Any], Iterable[tuple[Any, Any]]]
Evaluate = Callable[[Rounds, Code, Frame], Any]
Rows = tuple[tuple[str, Evaluate], ...]


class Macro(NamedTuple):
    """A macro over the types `ranges`, which binds one or two variables in each round.

    In its signature, A and B are the types of the variables, and R is the type of the range.
    """

    signature: Signature
    variables: int
    ranges: tuple[str, ...]
    pairs: Pairs
    evaluate: Evaluate

    def bind_types(self, target: Type) -> dict[str, Type]:
        """Return the types of the variables, as A and B."""
        first, second = (*target.params, DYN, DYN)[:2]
        if target.name == "list" and self.variables == 2:
            return {"A": INT, "B": first}
        return {"A": first, "B": second}

    def code(self, target: Code, slots: tuple[int, ...], args: list[Code], weight: int) -> Code:
        """Return the closure of the macro over `target`, whose `args` cost `weight` a round."""
        one, two = slots[0], slots[-1]
        *condition, body = args
        pairs, evaluate = self.pairs, self.evaluate

        def rounds(frame: Frame) -> Rounds:
            for first, second in pairs(target(frame)):
                frame[0].charge(weight)
                frame[one] = first
                frame[two] = second
                if not condition or truth(condition[0](frame)):
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


def _optional(value: Any) -> Optional:
    if type(value) is Optional:
        return value
    raise no_overload()


def _map(rounds: Rounds, body: Code, frame: Frame) -> list[Any]:
    return [body(frame) for _ in rounds]


def _merge(rounds: Rounds, body: Code, frame: Frame) -> dict[Any, Any]:
    entries: dict[Any, Any] = {}
    for _ in rounds:
        for key, value in _entries(body(frame)):
            frame[0].charge(4)
            if key in entries:
                raise EvaluationError(f"insert failed: key {brief(key)} already exists")
            entries[key] = value
    return entries


_OF_ALL: Rows = (
    (
        "(R).all(bool) -> bool",
        lambda rounds, body, frame: decide(frame, (body for _ in rounds), False),
    ),
    (
        "(R).exists(bool) -> bool",
        lambda rounds, body, frame: decide(frame, (body for _ in rounds), True),
    ),
    (
        "(R).exists_one(bool) -> bool; (R).existsOne(bool) -> bool",
        lambda rounds, body, frame: sum(truth(body(frame)) for _ in rounds) == 1,
    ),
)
_OF_ITEMS: Rows = (
    (
        "(R).filter(bool) -> list(A)",
        lambda rounds, body, frame: [item for item in rounds if truth(body(frame))],
    ),
    ("(R).map(T) -> list(T); (R).map(bool, T) -> list(T)", _map),
)
_OF_ENTRIES: Rows = (
    ("(R).transformList(T) -> list(T); (R).transformList(bool, T) -> list(T)", _map),
    (
        "(R).transformMap(T) -> map(A, T); (R).transformMap(bool, T) -> map(A, T)",
        lambda rounds, body, frame: {key: body(frame) for key in rounds},
    ),
    (
        "(R).transformMapEntry(map(K, V)) -> map(K, V); "
        "(R).transformMapEntry(bool, map(K, V)) -> map(K, V)",
        _merge,
    ),
)
_OF_LISTS: Rows = (
    (
        "(R).sortBy(T) -> R",
        lambda rounds, body, frame: sorted_by(frame[0], [(body(frame), item) for item in rounds]),
    ),
)
_OF_OPTIONALS: Rows = (
    (
        "(R).optMap(T) -> optional_type(T)",
        lambda rounds, body, frame: next((Optional(body(frame)) for _ in rounds), NONE),
    ),
    (
        "(R).optFlatMap(optional_type(T)) -> optional_type(T)",
        lambda rounds, body, frame: next((_optional(body(frame)) for _ in rounds), NONE),
    ),
)
# Number of variables, types that macros visit, and how.
_TABLE: tuple[tuple[int, tuple[str, ...], Pairs, Rows], ...] = (
    (1, ("list", "map"), _items, _OF_ALL + _OF_ITEMS),
    (2, ("list", "map"), _entries, _OF_ALL + _OF_ENTRIES),
    (1, ("list",), _of_list, _OF_LISTS),
    (1, ("optional_type",), _of_optional, _OF_OPTIONALS),
)
MACROS = {  # by name and number of arguments, variables included
    (signature.name, variables + len(signature.params) - 1): Macro(
        signature, variables, ranges, pairs, evaluate
    )
    for variables, ranges, pairs, rows in _TABLE
    for text, evaluate in rows
    for signature in parse_signatures(text)
}
