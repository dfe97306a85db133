"""Find the fields that an expression reads."""

from collections.abc import Iterator

from webhook.cel.parser import parse
from webhook.cel.syntax import Call, Ident, ListNode, Literal, MapNode, Node, Select, below

Steps = tuple[str, ...]
PRESENCE = "has()"  # a step: of the field before it, only its presence or that of a key is read


def fields_read(source: str) -> frozenset[Steps]:
    """Return the fields that an expression reads: a variable, and constant names below it.

    `object.spec.containers.all(c, c.name != '')` reads `object.spec.containers`, and `c.name`;
    `has(object.data)` reads `object.data`, `PRESENCE`, and `'a' in object.data` also that key.
    """
    return frozenset(_chains(parse(source)))


def field_named(source: str) -> Steps:
    """Return the field whose value an expression is; empty if it is anything else."""
    return _chain(parse(source))


def _chains(node: Node) -> Iterator[Steps]:
    """Yield each longest chain of names in a tree: `a.b`, `a.?b` and `a['b']`."""
    if steps := _chain(node):
        yield steps
        return
    match node:
        case Call(function="has", target=None, args=[tested]) if steps := _chain(tested):
            yield (*steps, PRESENCE)
            return
        case Call(function="@in", args=[Literal(value=str(key)), map_or_list]) if steps := _chain(
            map_or_list
        ):
            yield (*steps, PRESENCE, key)
            return
    while isinstance(node, Select):
        node = node.operand
    for child in below(node):
        yield from _chains(child)


def _chain(node: Node) -> Steps:
    steps: list[str] = []
    while True:
        match node:
            case Ident(name=name):
                return (name, *reversed(steps))
            case (
                Select(operand=node, field=field)
                | Call(function="_[_]" | "_[?_]" | "_?._", args=[node, Literal(value=str(field))])
            ):
                steps.append(field)
            case Call(function="orValue", target=Select() | Call() as node, args=[default]) if (
                _is_constant(default)
            ):
                continue
            case _:
                return ()


def _is_constant(node: Node) -> bool:
    """Return whether a node is a literal, or an empty list or map."""
    match node:
        case Literal() | ListNode(items=[]) | MapNode(entries=[]):
            return True
    return False
