"""The closures that nodes compile to."""

from typing import Any

from webhook.cel.errors import EvaluationError, no_overload
from webhook.cel.frames import Code, Frame, charge, decide
from webhook.cel.functions import Function, weigh
from webhook.cel.syntax import ListNode, Node
from webhook.cel.values import NONE, Optional, Uint, equal, field, has, index, optional_index, type_name

KEYS = frozenset({str, bool, int, Uint})  # what a key of a map can be


def constant(value: Any) -> Code:
    """Return the closure of a value that is always the same."""
    return lambda frame: value


def raising(text: str) -> Code:
    """Return a closure that raises an EvaluationError."""

    def raised(_: Frame) -> Any:
        raise EvaluationError(text)

    return raised


def path_of(base: Code, path: list[str]) -> Code:
    """Return the selection of one field after the other."""
    if len(path) == 1:
        return _field(base, path[0])

    def selected(frame: Frame) -> Any:
        found = first = base(frame)
        try:
            for name in path:
                found = found[name]
        except (KeyError, TypeError):
            for name in path:  # once more with all that CEL allows and says
                first = field(first, name)
            return first
        return found

    return selected


def _field(base: Code, name: str) -> Code:
    def selected(frame: Frame) -> Any:
        found = base(frame)
        try:
            return found[name]
        except (KeyError, TypeError):
            return field(found, name)

    return selected


def indexed(container: Code, key: Code, *, optional: bool) -> Code:
    """Return `container[key]`, or `container[?key]`."""
    if optional:
        return lambda frame: optional_index(container(frame), key(frame))
    return lambda frame: index(container(frame), key(frame))


def test(base: Code, path: list[str], last: str) -> Code:
    """Return `has()` of the field `last` behind `path`."""
    operand = path_of(base, path) if path else base

    def tested(frame: Frame) -> bool:
        found = operand(frame)
        return last in found if type(found) is dict else has(found, last)

    return tested


LARGE = frozenset({str, list, dict})  # what takes time to compare


def logic(terms: list[Code], *, absorbing: bool) -> Code:
    """Return `&&` (False decides) or `||` (True decides) of the terms."""
    return lambda frame: decide(frame, terms, absorbing)


def constant_equality(other: Code, known: str | bool, *, wanted: bool) -> Code:
    """Return the comparison with a constant text or boolean."""
    if isinstance(known, bool):
        return lambda frame: (other(frame) is known) is wanted
    return (lambda frame: other(frame) == known) if wanted else (lambda frame: other(frame) != known)


def equality(left: Code, right: Code, *, wanted: bool) -> Code:
    """Return `==`, or `!=` where `wanted` is False."""

    def compared(frame: Frame) -> bool:
        one, two = left(frame), right(frame)
        if type(one) in LARGE and type(two) is type(one):
            charge(frame, len(one) >> 8 if isinstance(one, str) else 2 * weigh(one))
        return equal(one, two) is wanted

    return compared


def conditional(condition: Code, yes: Code, no: Code) -> Code:
    """Return `condition ? yes : no`."""

    def chosen(frame: Frame) -> Any:
        found = condition(frame)
        if found is True:
            return yes(frame)
        if found is False:
            return no(frame)
        raise no_overload()

    return chosen


def constant_texts(node: Node) -> list[Any] | None:
    """Return the items of a list of texts."""
    if not isinstance(node, ListNode):
        return None
    values = [getattr(item, "value", None) if not optional else None for item, optional in node.items]
    return values if all(type(value) is str for value in values) else None


def in_constants(item: Code, items: list[str]) -> Code:
    """Return `item in items` of constant texts."""
    known = frozenset(items)

    def contained(frame: Frame) -> bool:
        found = item(frame)
        return type(found) is str and found in known

    return contained


def call(entry: Function, args: list[Code]) -> Code:
    """Return the call of a function, chosen by the types of its arguments."""
    table, resolve, cost = entry.table, entry.resolve, entry.cost
    if cost is None and len(args) == 1:
        only = args[0]

        def unary(frame: Frame) -> Any:
            value = only(frame)
            return (table.get((type(value),)) or resolve(value))(value)

        return unary
    if len(args) == 2:
        left, right = args

        def binary(frame: Frame) -> Any:
            one, two = left(frame), right(frame)
            found = table.get((type(one), type(two))) or resolve(one, two)
            if cost is not None:
                charge(frame, cost(one, two))
            return found(one, two)

        return binary

    def called(frame: Frame) -> Any:
        values = [arg(frame) for arg in args]
        found = table.get(tuple([type(value) for value in values])) or resolve(*values)
        if cost is not None:
            charge(frame, cost(*values))
        return found(*values)

    return called


def list_of(items: list[tuple[Code, bool]]) -> Code:
    """Return a list; an optional item is left out where it has no value."""
    if not any(optional for _, optional in items):
        codes = [code for code, _ in items]
        return lambda frame: [code(frame) for code in codes]

    def built(frame: Frame) -> list[Any]:
        found = ((_present(code(frame)) if optional else Optional(code(frame))) for code, optional in items)
        return [each.value for each in found if each is not NONE]

    return built


def map_of(entries: list[tuple[Code, Code, bool]]) -> Code:
    """Return a map; an optional entry is left out where it has no value."""

    def built(frame: Frame) -> dict[Any, Any]:
        found = {}
        for key, value, optional in entries:
            name, given = key(frame), value(frame)
            if type(name) not in KEYS:
                raise EvaluationError(f"unsupported key type: {type_name(name)}")
            if name in found:
                raise EvaluationError(f"failed with repeated key: {name}")
            if optional and (given := _present(given)) is not NONE:
                found[name] = given.value
            elif not optional:
                found[name] = given
        return found

    return built


def _present(value: Any) -> Optional:
    if type(value) is Optional:
        return value
    raise EvaluationError(f"cannot initialize optional entry from non-optional value {type_name(value)}")
