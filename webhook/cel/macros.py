"""The macros: `all`, `exists`, `map`, `filter` and their kin over lists and maps, `optMap` over optionals."""

from collections.abc import Callable, Iterator
from functools import cmp_to_key
from typing import Any

from webhook.cel.errors import BudgetError, EvaluationError, no_overload
from webhook.cel.frames import Code, Frame, decide
from webhook.cel.values import NONE, ORDERED, Optional, compare, type_name

Rounds = Callable[[Frame], Iterator[Any]]


def compile_macro(macro: str, target: Code, slots: tuple[int, ...], args: list[Code], weight: int) -> Code:
    """Return the closure of a macro whose body costs `weight` a round."""
    if macro in {"optMap", "optFlatMap"}:
        return _optional(target, slots[0], args[0], flat=macro == "optFlatMap")
    rounds = _rounds(_listed(target) if macro == "sortBy" else target, slots, weight)
    match macro:
        case "all" | "exists":
            return lambda frame: decide(frame, (args[0] for _ in rounds(frame)), macro == "exists")
        case "exists_one" | "existsOne":
            return lambda frame: sum(_truth(args[0](frame)) for _ in rounds(frame)) == 1
        case "filter":
            return lambda frame: [item for item in rounds(frame) if _truth(args[0](frame))]
        case "sortBy":
            return lambda frame: sorted_by([(args[0](frame), item) for item in rounds(frame)])
    body, kept = args[-1], args[0] if len(args) > 1 else None
    chosen = rounds if kept is None else _filtered(rounds, kept)
    match macro:
        case "transformMap":
            return lambda frame: {key: body(frame) for key in chosen(frame)}
        case "transformMapEntry":
            return lambda frame: _merged(body(frame) for _ in chosen(frame))
    return lambda frame: [body(frame) for _ in chosen(frame)]


def _rounds(target: Code, slots: tuple[int, ...], weight: int) -> Rounds:
    first, second = slots[0], slots[-1]

    def single(frame: Frame) -> Iterator[Any]:
        meter = frame[0]
        for item in _iterable(target(frame)):
            meter[0] -= weight
            if meter[0] < 0:
                raise BudgetError
            frame[first] = item
            yield item

    def double(frame: Frame) -> Iterator[Any]:
        meter = frame[0]
        container = target(frame)
        if not isinstance(container, list | dict):
            raise EvaluationError(f"unsupported comprehension range type: {_go_type(container)}")
        for key, item in container.items() if isinstance(container, dict) else enumerate(container):
            meter[0] -= weight
            if meter[0] < 0:
                raise BudgetError
            frame[first], frame[second] = key, item
            yield key

    return single if first == second else double


def _filtered(rounds: Rounds, kept: Code) -> Rounds:
    return lambda frame: (item for item in rounds(frame) if _truth(kept(frame)))


def _iterable(value: Any) -> Any:
    if isinstance(value, list | dict):
        return value
    raise EvaluationError(f"got '{_go_type(value)}', expected iterable type")


def _listed(target: Code) -> Code:
    def listed(frame: Frame) -> Any:
        found = target(frame)
        if isinstance(found, dict):
            raise EvaluationError("no such overload: @sortByAssociatedKeys")
        return found

    return listed


def _go_type(value: Any) -> str:
    return "types.Null" if value is None else f"types.{type_name(value).rpartition('.')[2].title()}"


def _truth(value: Any) -> bool:
    if value is True or value is False:
        return value
    raise no_overload()


def _optional(target: Code, slot: int, body: Code, *, flat: bool) -> Code:
    def mapped(frame: Frame) -> Optional:
        found = target(frame)
        if type(found) is not Optional:
            raise no_overload()
        if found is NONE:
            return NONE
        frame[slot] = found.value
        value = body(frame)
        if not flat:
            return Optional(value)
        if type(value) is not Optional:
            raise no_overload()
        return value

    return mapped


def _merged(maps: Iterator[Any]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for each in maps:
        for key, value in _iterable(each).items():
            if key in found:
                raise EvaluationError(f"insert failed: key {key} already exists")
            found[key] = value
    return found


def _by_first(one: tuple[Any, Any], two: tuple[Any, Any]) -> int:
    return compare(one[0], two[0])


def sorted_by(pairs: list[tuple[Any, Any]]) -> list[Any]:
    """Return the second of each pair in the order of the first, all of one ordered type."""
    if any(type(key) is not type(pairs[0][0]) for key, _ in pairs):
        raise EvaluationError("list elements must have the same type")
    if pairs and type(pairs[0][0]) not in ORDERED:
        raise EvaluationError("list elements must be comparable")
    return [item for _, item in sorted(pairs, key=cmp_to_key(_by_first))]
