"""Lists, sets and optionals: cel-go's extensions and Kubernetes' list library."""

from itertools import pairwise
from typing import Any

from webhook.cel.errors import EvaluationError, no_overload
from webhook.cel.functions import FUNCTIONS, compared, declare, function, per_item, product, weigh
from webhook.cel.macros import sorted_by
from webhook.cel.values import NONE, ORDERED, Optional, compare, equal, is_zero, type_name

_COMPARABLE = ["int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"]


def _each(signature: str, types: list[str]) -> tuple[str, ...]:
    return tuple(signature.replace("T", each) for each in types)


def _order(one: Any, two: Any) -> int:
    """Return how two items compare; 0 for different types, which the API server lets pass."""
    if type(two) not in ORDERED:
        raise no_overload()
    try:
        return compare(one, two)
    except EvaluationError:
        return 0


def _check_items(name: str, items: list[Any], *unknown: str) -> None:
    """Refuse what the first item decides: that there is no such function for this list."""
    if items and type_name(items[0]) in {"list", "map", "null_type", "type", "optional_type", *unknown}:
        raise EvaluationError(f"no such overload: {name}(list)")


@function(*_each("(list(T)).isSorted() -> bool", _COMPARABLE), cost=compared)
def _is_sorted(items: list[Any]) -> bool:
    _check_items("isSorted", items)
    return all(_order(one, two) <= 0 for one, two in pairwise(items))


@function(*_each("(list(T)).sum() -> T", ["int", "uint", "double", "duration"]), cost=compared)
def _sum(items: list[Any]) -> Any:
    _check_items("sum", items, "string", "bytes", "bool", "google.protobuf.Timestamp")
    add, total = FUNCTIONS["_+_"], items[0] if items else 0
    for item in items[1:]:
        total = (add.table.get((type(total), type(item))) or add.resolve(total, item))(total, item)
    return total


def _position(items: list[Any], wanted: Any, places: range) -> int:
    return next((place for place in places if equal(items[place], wanted)), -1)


def _best(items: list[Any], name: str, worse: int) -> Any:
    if not items:
        raise EvaluationError(f"{name} called on empty list")
    _check_items(name, items)
    best = items[0]
    for item in items[1:]:
        if _order(best, item) == worse:
            best = item
    return best


declare(lambda items: _best(items, "min", 1), *_each("(list(T)).min() -> T", _COMPARABLE), cost=compared)
declare(lambda items: _best(items, "max", -1), *_each("(list(T)).max() -> T", _COMPARABLE), cost=compared)
declare(lambda items, item: _position(items, item, range(len(items))), "(list(A)).indexOf(A) -> int", cost=compared)
declare(
    lambda items, item: _position(items, item, range(len(items) - 1, -1, -1)),
    "(list(A)).lastIndexOf(A) -> int",
    cost=compared,
)


@function("(list(A)).slice(int, int) -> list(A)", cost=per_item)
def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    called = f"cannot slice({start}, {end})"
    if start < 0 or end < 0:
        raise EvaluationError(f"{called}, negative indexes not supported")
    if start > end:
        raise EvaluationError(f"{called}, start index must be less than or equal to end index")
    if end > len(items):
        raise EvaluationError(f"{called}, list is length {len(items)}")
    return items[start:end]


@function("(list(list(A))).flatten() -> list(A)", "(list(A)).flatten() -> list(dyn)", cost=per_item)
@function("(list(dyn)).flatten(int) -> list(dyn)", cost=per_item)
def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    found = list(items)
    for _ in range(min(depth, 64)):
        if not any(type(item) is list for item in found):
            break
        found = [each for item in found for each in (item if type(item) is list else (item,))]
    return found


@function(*_each("(list(T)).sort() -> list(T)", _COMPARABLE), cost=lambda items: 32 * weigh(items))
def _sort(items: list[Any]) -> list[Any]:
    return sorted_by([(item, item) for item in items])


declare(lambda count: list(range(count)), "lists.range(int) -> list(int)", cost=lambda count: max(count, 0) >> 2)
declare(lambda items: items[::-1], "(list(A)).reverse() -> list(A)", cost=per_item)
declare(lambda items: Optional(items[0]) if items else NONE, "(list(A)).first() -> optional_type(A)")
declare(lambda items: Optional(items[-1]) if items else NONE, "(list(A)).last() -> optional_type(A)")


@function("(list(A)).distinct() -> list(A)", cost=lambda items: product(items, items) >> 1)
def _distinct(items: list[Any]) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if not any(equal(item, each) for each in found):
            found.append(item)
    return found


def _contains(items: list[Any], wanted: list[Any]) -> bool:
    return all(any(equal(each, item) for item in items) for each in wanted)


declare(_contains, "sets.contains(list(A), list(A)) -> bool", cost=product)
declare(
    lambda one, two: _contains(one, two) and _contains(two, one),
    "sets.equivalent(list(A), list(A)) -> bool",
    cost=product,
)
declare(
    lambda one, two: any(equal(each, item) for each in one for item in two),
    "sets.intersects(list(A), list(A)) -> bool",
    cost=product,
)
declare(Optional, "optional.of(A) -> optional_type(A)")
declare(lambda value: NONE if is_zero(value) else Optional(value), "optional.ofNonZeroValue(A) -> optional_type(A)")
declare(lambda: NONE, "optional.none() -> optional_type(A)")
declare(lambda optional: optional is not NONE, "(optional_type(A)).hasValue() -> bool")
declare(lambda one, two: two if one is NONE else one, "(optional_type(A)).or(optional_type(A)) -> optional_type(A)")
declare(lambda one, value: value if one is NONE else one.value, "(optional_type(A)).orValue(A) -> A")


@function("(optional_type(A)).value() -> A")
def _value(optional: Optional) -> Any:
    if optional is NONE:
        raise EvaluationError("optional.none() dereference")
    return optional.value


@function("optional.unwrap(list(optional_type(A))) -> list(A)", "(list(optional_type(A))).unwrapOpt() -> list(A)")
def _unwrap(items: list[Any]) -> list[Any]:
    for item in items:
        if type(item) is not Optional:
            raise EvaluationError(f"value {item} is not optional")
    return [item.value for item in items if item is not NONE]
