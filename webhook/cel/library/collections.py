"""Lists, sets and optionals: cel-go's extensions and Kubernetes' list library."""

from functools import reduce
from itertools import pairwise
from typing import Any

from webhook.cel.errors import EvaluationError, no_overload
from webhook.cel.functions import FUNCTIONS, compared, function, product, weigh
from webhook.cel.values import NONE, ORDERED, Optional, Timestamp, compare, equal, sorted_by, type_name

_UNORDERED = {"list", "map", "null_type", "type", "optional_type"}
_WITHOUT_SUM = _UNORDERED | {"string", "bytes", "bool", "google.protobuf.Timestamp"}


def _order(one: Any, two: Any) -> int:
    """Return how two items compare; 0 for different types, which the API server lets pass."""
    if type(two) not in ORDERED:
        raise no_overload()
    try:
        return compare(one, two)
    except EvaluationError:
        return 0


def _check_first(name: str, items: list[Any], unknown: set[str]) -> None:
    """Refuse what the first item decides: that there is no such function for this list."""
    if items and type_name(items[0]) in unknown:
        raise EvaluationError(f"no such overload: {name}(list)")


@function("(list(C)).isSorted() -> bool", cost=compared)
def _is_sorted(items: list[Any]) -> bool:
    _check_first("isSorted", items, _UNORDERED)
    return all(_order(one, two) <= 0 for one, two in pairwise(items))


@function("(list(N)).sum() -> N", "(list(duration)).sum() -> duration", cost=compared)
def _sum(items: list[Any]) -> Any:
    _check_first("sum", items, _WITHOUT_SUM)
    return reduce(FUNCTIONS["_+_"], items) if items else 0


def _best(name: str, items: list[Any], worse: int) -> Any:
    if not items:
        raise EvaluationError(f"{name} called on empty list")
    _check_first(name, items, _UNORDERED)
    return reduce(lambda best, item: item if _order(best, item) == worse else best, items)


def _position(items: list[Any], wanted: Any, places: range) -> int:
    return next((place for place in places if equal(items[place], wanted)), -1)


function("(list(C)).min() -> C", cost=compared)(lambda items: _best("min", items, 1))
function("(list(C)).max() -> C", cost=compared)(lambda items: _best("max", items, -1))
function("(list(A)).indexOf(A) -> int", cost=compared)(lambda items, item: _position(items, item, range(len(items))))
function("(list(A)).lastIndexOf(A) -> int", cost=compared)(
    lambda items, item: _position(items, item, range(len(items))[::-1])
)


@function("(list(A)).slice(int, int) -> list(A)", cost=weigh)
def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    called = f"cannot slice({start}, {end})"
    if start < 0 or end < 0:
        raise EvaluationError(f"{called}, negative indexes not supported")
    if start > end:
        raise EvaluationError(f"{called}, start index must be less than or equal to end index")
    if end > len(items):
        raise EvaluationError(f"{called}, list is length {len(items)}")
    return items[start:end]


_FLATTEN = (
    "(list(dyn)).flatten(int) -> list(dyn)",
    "(list(list(A))).flatten() -> list(A)",
    "(list(A)).flatten() -> list(dyn)",
)


@function(*_FLATTEN, cost=weigh)
def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    found = list(items)
    for _ in range(min(depth, 64)):
        if not any(type(item) is list for item in found):
            break
        found = [each for item in found for each in (item if type(item) is list else (item,))]
    return found


@function("(list(C)).sort() -> list(C)", cost=lambda items: 32 * weigh(items))
def _sort(items: list[Any]) -> list[Any]:
    return sorted_by([(item, item) for item in items])


@function("(list(A)).distinct() -> list(A)", cost=lambda items: product(items, items) >> 1)
def _distinct(items: list[Any]) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if not any(equal(item, each) for each in found):
            found.append(item)
    return found


function("lists.range(int) -> list(int)", cost=lambda count: max(count, 0) >> 2)(lambda count: list(range(count)))
function("(list(A)).reverse() -> list(A)", cost=weigh)(lambda items: items[::-1])
function("(list(A)).first() -> optional_type(A)")(lambda items: Optional(items[0]) if items else NONE)
function("(list(A)).last() -> optional_type(A)")(lambda items: Optional(items[-1]) if items else NONE)


@function("sets.contains(list(A), list(A)) -> bool", cost=product)
def _contains(items: list[Any], wanted: list[Any]) -> bool:
    return all(any(equal(each, item) for item in items) for each in wanted)


@function("sets.equivalent(list(A), list(A)) -> bool", cost=product)
def _equivalent(one: list[Any], two: list[Any]) -> bool:
    return _contains(one, two) and _contains(two, one)


@function("sets.intersects(list(A), list(A)) -> bool", cost=product)
def _intersects(one: list[Any], two: list[Any]) -> bool:
    return any(equal(each, item) for each in one for item in two)


function("optional.of(A) -> optional_type(A)")(Optional)
function("optional.none() -> optional_type(A)")(lambda: NONE)
function("(optional_type(A)).hasValue() -> bool")(lambda one: one is not NONE)
function("(optional_type(A)).or(optional_type(A)) -> optional_type(A)")(lambda one, two: two if one is NONE else one)
function("(optional_type(A)).orValue(A) -> A")(lambda one, value: value if one is NONE else one.value)


@function("optional.ofNonZeroValue(A) -> optional_type(A)")
def _of_non_zero(value: Any) -> Optional:
    return Optional(value) if value or type(value) is Timestamp else NONE


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
