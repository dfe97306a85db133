"""Find the fields that an expression reads."""

from collections.abc import Iterator

from webhook.cel.parser import parse
from webhook.cel.syntax import Call, Ident, Literal, Node, Select, below

Steps = tuple[str, ...]


def fields_read(source: str) -> frozenset[Steps]:
    """Return the fields that an expression reads: a variable, and constant names below it.

    `object.spec.containers.all(c, c.name != '')` reads `object.spec.containers`, and `c.name`.
    """
    return frozenset(_chains(parse(source)))


def _chains(node: Node) -> Iterator[Steps]:
    """Yield each longest chain of names in a tree: `a.b`, `a.?b` and `a['b']`."""
    if steps := _chain(node):
        yield steps
        return
    while isinstance(node, Select):
        node = node.operand
    for each in below(node):
        yield from _chains(each)


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
            case _:
                return ()
