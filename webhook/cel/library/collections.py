"""Lists, sets and optionals: cel-go's extensions and Kubernetes' list library."""

from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from typing import Any

from webhook.cel.cost import NO_MORE, READ, WALKED, Meter, comparing, of_size
from webhook.cel.errors import EvaluationError, no_overload
from webhook.cel.functions import FUNCTIONS, Code, Frame, declare, declare_forms
from webhook.cel.values import (
    NONE,
    ORDERED,
    Optional,
    Timestamp,
    brief,
    compare,
    equal,
    sorted_by,
    type_name,
)

_UNORDERED = {"list", "map", "null_type", "type", "optional_type"}
_WITHOUT_SUM = _UNORDERED | {"string", "bytes", "bool", "google.protobuf.Timestamp"}


def _order(meter: Meter, one: Any, two: Any) -> int:
    """Return how two items compare; 0 for different types, which the API server allows."""
    meter.charge(5 + comparing(one, two))
    if type(two) not in ORDERED:
        raise no_overload()
    try:
        return compare(one, two)
    except EvaluationError:
        return 0


def _check_first(name: str, items: list[Any], unknown: set[str]) -> None:
    """Raise EvaluationError if the function does not exist for the type of the first item."""
    if items and type_name(items[0]) in unknown:
        raise no_overload(f"{name}(list)")


def _is_sorted(meter: Meter, items: list[Any]) -> bool:
    _check_first("isSorted", items, _UNORDERED)
    return all(_order(meter, one, two) <= 0 for one, two in pairwise(items))


def _sum(meter: Meter, items: list[Any]) -> Any:
    _check_first("sum", items, _WITHOUT_SUM)
    total = items[0] if items else 0
    for item in items[1:]:
        meter.charge(6)
        total = FUNCTIONS["_+_"](meter, total, item)
    return total


def _best(meter: Meter, name: str, items: list[Any], worse: int) -> Any:
    if not items:
        raise EvaluationError(f"{name} called on empty list")
    _check_first(name, items, _UNORDERED)
    best = items[0]
    for item in items[1:]:
        best = item if _order(meter, best, item) == worse else best
    return best


def _position(meter: Meter, items: list[Any], sought: Any, step: int = 1) -> int:
    for place in range(len(items))[::step]:
        meter.charge(2)
        if equal(meter, items[place], sought):
            return place
    return -1


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(items):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _slicing(items: list[Any], start: int, end: int) -> int:
    return max(min(end, len(items)) - start, 0) >> READ


def _flatten(meter: Meter, items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat: list[Any] = []
    _flatten_into(meter, flat, items, depth)
    return flat


def _flatten_into(meter: Meter, flat: list[Any], items: list[Any], depth: int) -> None:
    meter.charge(len(items))
    for item in items:
        if depth and type(item) is list:
            _flatten_into(meter, flat, item, depth - 1)
        else:
            flat.append(item)


def _has(meter: Meter, items: list[Any], sought: Any) -> bool:
    return _position(meter, items, sought) >= 0


def _sort(meter: Meter, items: list[Any]) -> list[Any]:
    meter.charge(len(items))
    return sorted_by(meter, list(zip(items, items, strict=True)))


def _distinct(meter: Meter, items: list[Any]) -> list[Any]:
    distinct: list[Any] = []
    for item in items:
        meter.charge(4)
        if not _has(meter, distinct, item):
            distinct.append(item)
    return distinct


def _contains(meter: Meter, items: list[Any], sought: Iterable[Any]) -> bool:
    return all(_has(meter, items, each) for each in _each(meter, sought))


def _equivalent(meter: Meter, one: list[Any], two: list[Any]) -> bool:
    return _contains(meter, one, two) and _contains(meter, two, one)


def _intersects(meter: Meter, one: list[Any], two: list[Any]) -> bool:
    return any(_has(meter, two, each) for each in _each(meter, one))


def _each(meter: Meter, items: Iterable[Any]) -> Iterable[Any]:
    for item in items:
        meter.charge(2)
        yield item


def _of_non_zero(value: Any) -> Optional:
    return Optional(value) if value or type(value) is Timestamp else NONE


def _value(optional: Optional) -> Any:
    if optional is NONE:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def _or(optional: Code, other: Code, *, is_value: bool = False) -> Code:
    """Return an optional (or its value), or else another.

    As in cel-go, other values are returned.
    """

    def choose(frame: Frame) -> Any:
        chosen = optional(frame)
        if chosen is NONE:
            return other(frame)
        return chosen.value if is_value and type(chosen) is Optional else chosen

    return choose


def _end(items: list[Any], index: int) -> Optional:
    return Optional(items[index]) if items else NONE


def _unwrap(items: list[Any]) -> list[Any]:
    for item in items:
        if type(item) is not Optional:
            raise EvaluationError(f"value {brief(item)} is not optional")
    return [item.value for item in items if item is not NONE]


_FLATTEN = """(list(dyn)).flatten(int) -> list(dyn); (list(list(A))).flatten() -> list(A)"""
_UNWRAP = (
    "optional.unwrap(list(optional_type(A))) -> list(A); (list(optional_type(A))).unwrapOpt() -> "
    "list(A)"
)

declare(
    ("(list(C)).isSorted() -> bool", _is_sorted, WALKED),
    ("(list(N)).sum() -> N; (list(duration)).sum() -> duration", _sum, WALKED),
    ("(list(C)).min() -> C", lambda meter, items: _best(meter, "min", items, 1), WALKED),
    ("(list(C)).max() -> C", lambda meter, items: _best(meter, "max", items, -1), WALKED),
    ("(list(A)).indexOf(A) -> int", _position, WALKED),
    ("(list(A)).lastIndexOf(A) -> int", partial(_position, step=-1), WALKED),
    ("(list(A)).slice(int, int) -> list(A)", _slice, _slicing),
    (_FLATTEN, _flatten, WALKED),
    ("(list(C)).sort() -> list(C)", _sort, WALKED),
    ("(list(A)).distinct() -> list(A)", _distinct, WALKED),
    ("(list(A)).reverse() -> list(A)", lambda items: items[::-1], of_size(READ)),
    ("(list(A)).first() -> optional_type(A)", lambda items: _end(items, 0), NO_MORE),
    ("(list(A)).last() -> optional_type(A)", lambda items: _end(items, -1), NO_MORE),
    ("lists.range(int) -> list(int)", lambda count: [*range(count)], lambda n: max(n, 0) >> 2),
    ("sets.contains(list(A), list(A)) -> bool", _contains, WALKED),
    ("sets.equivalent(list(A), list(A)) -> bool", _equivalent, WALKED),
    ("sets.intersects(list(A), list(A)) -> bool", _intersects, WALKED),
    ("optional.of(A) -> optional_type(A)", Optional, NO_MORE),
    ("optional.none() -> optional_type(A)", lambda: NONE, NO_MORE),
    ("optional.ofNonZeroValue(A) -> optional_type(A)", _of_non_zero, NO_MORE),
    ("(optional_type(A)).hasValue() -> bool", lambda one: one is not NONE, NO_MORE),
    ("(optional_type(A)).value() -> A", _value, NO_MORE),
    (_UNWRAP, _unwrap, of_size(1)),
)
declare_forms(
    ("(optional_type(A)).or(optional_type(A)) -> optional_type(A)", _or),
    ("(optional_type(A)).orValue(A) -> A", partial(_or, is_value=True)),
)
