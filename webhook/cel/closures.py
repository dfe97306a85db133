"""The closures of selections, lists and maps, and of operators that skip operands."""

from collections.abc import Iterable
from typing import Any

from webhook.cel.cost import WALKED
from webhook.cel.errors import EvaluationError, no_overload
from webhook.cel.functions import Code, Frame, declare, declare_forms
from webhook.cel.values import (
    KEYS,
    NONE,
    Optional,
    brief,
    equal,
    field,
    index,
    optional_index,
    type_name,
)

CAUGHT = 30  # cost of an error that an operator absorbs


def constant(value: Any) -> Code:
    """Return the closure of a value that is always the same."""
    return lambda frame: value


def path_of(base: Code, path: list[str]) -> Code:
    """Return the selection of one field after the other."""

    def select_path(frame: Frame) -> Any:
        value = first = base(frame)
        try:
            for name in path:
                value = value[name]
        except (KeyError, TypeError):
            for name in path:  # the slow path, for all of CEL's types and errors
                first = field(first, name)
            return first
        return value

    return select_path


def test(base: Code, name: str) -> Code:
    """Return `has()` of a field."""

    def test_field(frame: Frame) -> bool:
        value = base(frame)
        return name in value if type(value) is dict else optional_index(value, name) is not NONE

    return test_field


def decide(frame: Frame, terms: Iterable[Code], absorbing: bool) -> bool:
    """Return `absorbing` if any term is that, else the opposite; or raise the first error."""
    error: EvaluationError | None = None
    for term in terms:
        try:
            value = term(frame)
        except EvaluationError as caught:
            frame[0].charge(CAUGHT)
            error = error or caught
            continue
        if value is absorbing:
            return bool(absorbing)
        if value is not (not absorbing):
            error = error or no_overload()
    if error is not None:
        raise error
    return not absorbing


def truth(value: Any) -> bool:
    """Return a bool. Raises EvaluationError for any other value."""
    if value is True or value is False:
        return value
    raise no_overload()


def list_of(items: list[tuple[Code, bool]]) -> Code:
    """Return the closure of a list; an optional item without a value is left out."""
    return lambda frame: [
        value for code, optional in items for value in _present(code(frame), optional)
    ]


def map_of(entries: list[tuple[Code, Code, bool]]) -> Code:
    """Return the closure of a map; an optional entry without a value is left out."""

    def build_map(frame: Frame) -> dict[Any, Any]:
        built = {}
        for key, value, optional in entries:
            name, given = key(frame), _present(value(frame), optional)
            if type(name) not in KEYS:
                raise EvaluationError(f"unsupported key type: {type_name(name)}")
            if name in built:
                raise EvaluationError(f"failed with repeated key: {brief(name)}")
            if given:
                built[name] = given[0]
        return built

    return build_map


def _present(value: Any, optional: bool) -> tuple[Any, ...]:
    if not optional:
        return (value,)
    if type(value) is Optional:
        return () if value is NONE else (value.value,)
    raise EvaluationError(
        f"cannot initialize optional entry from non-optional value {type_name(value)}"
    )


_OF_OPTIONALS = (
    "{0}(optional_type(list(A)), int) -> optional_type(A); "
    "{0}(optional_type(map(A, B)), A) -> optional_type(B)"
)

declare_forms(
    ("_&&_(bool...) -> bool", lambda *terms: lambda frame: decide(frame, terms, False)),
    ("_||_(bool...) -> bool", lambda *terms: lambda frame: decide(frame, terms, True)),
    (
        "_?_:_(bool, A, A) -> A",
        lambda condition, yes, no: lambda frame: (yes if truth(condition(frame)) else no)(frame),
    ),
    (
        "_[_](list(A), int) -> A; _[_](map(A, B), A) -> B; " + _OF_OPTIONALS.format("_[_]"),
        lambda container, key: lambda frame: index(container(frame), key(frame)),
    ),
    (
        "_[?_](list(A), int) -> optional_type(A); _[?_](map(A, B), A) -> optional_type(B); "
        + _OF_OPTIONALS.format("_[?_]"),
        lambda container, key: lambda frame: optional_index(container(frame), key(frame)),
    ),
)
declare(
    ("_==_(A, A) -> bool", equal, WALKED),
    ("_!=_(A, A) -> bool", lambda meter, one, two: not equal(meter, one, two), WALKED),
)
