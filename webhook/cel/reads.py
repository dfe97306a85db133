"""Find the fields that an expression reads."""

from collections.abc import Iterator

from webhook.cel.parser import parse
from webhook.cel.syntax import Call, Ident, ListNode, Literal, MapNode, Node, Select

Steps = tuple[str, ...]


def fields_read(source: str) -> frozenset[Steps]:
    """Return the fields that an expression, which compiles, reads: a variable, and the constant names below it.

    `object.spec.containers.all(c, c.name != '')` reads `object.spec.containers`, and `c.name`.
    """
    return frozenset(_chains(parse(source)))


def _chains(node: Node) -> Iterator[Steps]:
    """Yield each longest chain of names in a tree: `a.b`, `a.?b` and `a['b']`."""
    if steps := _chain(node):
        yield steps
        return
    for each in _below(node):
        yield from _chains(each)


def _chain(node: Node) -> Steps:
    match node:
        case Ident(name=name):
            return (name,)
        case Select(operand=operand, field=field):
            return _and(_chain(operand), field)
        case Call(function="_[_]" | "_[?_]" | "_?._", args=[operand, Literal(value=str(field))]):
            return _and(_chain(operand), field)
    return ()


def _and(steps: Steps, field: str) -> Steps:
    return (*steps, field) if steps else ()


def _below(node: Node) -> list[Node]:
    match node:
        case Select(operand=operand):
            return [operand]
        case Call(target=target, args=args):
            return [*([] if target is None else [target]), *args]
        case ListNode(items=items):
            return [item for item, _ in items]
        case MapNode(entries=entries):
            return [part for key, value, _ in entries for part in (key, value)]
    return []
