"""Lists, sets and optionals: cel-go's extensions and Kubernetes' list library."""

from functools import reduce
from itertools import pairwise
from typing import Any

from webhook.cel.errors import EvaluationError, no_overload
from webhook.cel.functions import FUNCTIONS, compared, declare, product, weigh
from webhook.cel.values import (
    NONE,
    ORDERED,
    Optional,
    Timestamp,
    compare,
    equal,
    sorted_by,
    type_name,
)

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
        raise no_overload(f"{name}(list)")


def _is_sorted(items: list[Any]) -> bool:
    _check_first("isSorted", items, _UNORDERED)
    return all(_order(one, two) <= 0 for one, two in pairwise(items))


def _sum(items: list[Any]) -> Any:
    _check_first("sum", items, _WITHOUT_SUM)
    return reduce(FUNCTIONS["_+_"], items) if items else 0


def _best(name: str, items: list[Any], worse: int) -> Any:
    if not items:
        raise EvaluationError(f"{name} called on empty list")
    _check_first(name, items, _UNORDERED)
    return reduce(lambda best, item: item if _order(best, item) == worse else best, items)


def _position(items: list[Any], wanted: Any, step: int = 1) -> int:
    return next((place for place in range(len(items))[::step] if equal(items[place], wanted)), -1)


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(items):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    if depth == 0 or not any(type(item) is list for item in items):
        return items
    return _flatten(
        [each for item in items for each in (item if type(item) is list else (item,))], depth - 1
    )


def _has(items: list[Any], wanted: Any) -> bool:
    return any(equal(item, wanted) for item in items)


def _distinct(items: list[Any]) -> list[Any]:
    return [item for place, item in enumerate(items) if not _has(items[:place], item)]


def _contains(items: list[Any], wanted: list[Any]) -> bool:
    return all(_has(items, each) for each in wanted)


def _value(optional: Optional) -> Any:
    if optional is NONE:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def _unwrap(items: list[Any]) -> list[Any]:
    for item in items:
        if type(item) is not Optional:
            raise EvaluationError(f"value {item} is not optional")
    return [item.value for item in items if item is not NONE]


_FLATTEN = """(list(dyn)).flatten(int) -> list(dyn); (list(list(A))).flatten() -> list(A);
    (list(A)).flatten() -> list(dyn)"""
_UNWRAP = (
    "optional.unwrap(list(optional_type(A))) -> list(A); (list(optional_type(A))).unwrapOpt() -> "
    "list(A)"
)

declare(
    ("(list(C)).isSorted() -> bool", _is_sorted, compared),
    ("(list(N)).sum() -> N; (list(duration)).sum() -> duration", _sum, compared),
    ("(list(C)).min() -> C", lambda items: _best("min", items, 1), compared),
    ("(list(C)).max() -> C", lambda items: _best("max", items, -1), compared),
    ("(list(A)).indexOf(A) -> int", _position, compared),
    (
        "(list(A)).lastIndexOf(A) -> int",
        lambda items, wanted: _position(items, wanted, -1),
        compared,
    ),
    ("(list(A)).slice(int, int) -> list(A)", _slice, weigh),
    (_FLATTEN, _flatten, weigh),
    (
        "(list(C)).sort() -> list(C)",
        lambda items: sorted_by([(item, item) for item in items]),
        lambda items: 32 * weigh(items),
    ),
    ("(list(A)).distinct() -> list(A)", _distinct, lambda items: product(items, items) >> 1),
    ("(list(A)).reverse() -> list(A)", lambda items: items[::-1], weigh),
    ("(list(A)).first() -> optional_type(A)", lambda items: Optional(items[0]) if items else NONE),
    ("(list(A)).last() -> optional_type(A)", lambda items: Optional(items[-1]) if items else NONE),
    (
        "lists.range(int) -> list(int)",
        lambda count: list(range(count)),
        lambda count: max(count, 0) >> 2,
    ),
    ("sets.contains(list(A), list(A)) -> bool", _contains, product),
    (
        "sets.equivalent(list(A), list(A)) -> bool",
        lambda one, two: _contains(one, two) and _contains(two, one),
        product,
    ),
    (
        "sets.intersects(list(A), list(A)) -> bool",
        lambda one, two: any(_has(two, each) for each in one),
        product,
    ),
    ("optional.of(A) -> optional_type(A)", Optional),
    ("optional.none() -> optional_type(A)", lambda: NONE),
    (
        "optional.ofNonZeroValue(A) -> optional_type(A)",
        lambda value: Optional(value) if value or type(value) is Timestamp else NONE,
    ),
    ("(optional_type(A)).hasValue() -> bool", lambda one: one is not NONE),
    ("(optional_type(A)).value() -> A", _value),
    (
        "(optional_type(A)).or(optional_type(A)) -> optional_type(A)",
        lambda one, two: two if one is NONE else one,
    ),
    ("(optional_type(A)).orValue(A) -> A", lambda one, value: value if one is NONE else one.value),
    (_UNWRAP, _unwrap),
)
