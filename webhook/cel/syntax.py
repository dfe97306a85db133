"""The nodes of a parsed expression; `at` is the offset in its text."""

from typing import Any, NamedTuple


class Literal(NamedTuple):
    """A constant."""

    at: int
    value: Any


class Ident(NamedTuple):
    """A variable, or a type by its name."""

    at: int
    name: str


class Select(NamedTuple):
    """`operand.field`."""

    at: int
    operand: "Node"
    field: str


class Call(NamedTuple):
    """`function(args)` or `target.function(args)`; operators have cel-spec's names: `_+_`."""

    at: int
    function: str
    target: "Node | None"
    args: list["Node"]


class ListNode(NamedTuple):
    """`[a, ?b]`: each item and whether it has a question mark."""

    at: int
    items: list[tuple["Node", bool]]


class MapNode(NamedTuple):
    """`{k: v}`, or `Name{field: v}` where it has a name; each entry is (key, value, optional)."""

    at: int
    entries: list[tuple["Node", "Node", bool]]
    name: str = ""


Node = Literal | Ident | Select | Call | ListNode | MapNode


def qualified_name(node: Node | None) -> str:
    """Return `a.b.c` for a chain of names, "" for anything else."""
    fields = []
    while isinstance(node, Select):
        fields.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(fields)]) if isinstance(node, Ident) else ""


def below(node: Node) -> list[Node]:
    """Return the operands, arguments, items, keys and values of a node; a selection has none."""
    match node:
        case Call(target=target, args=args):
            return [*([] if target is None else [target]), *args]
        case ListNode(items=items):
            return [item for item, _ in items]
        case MapNode(entries=entries):
            return [part for key, value, _ in entries for part in (key, value)]
    return []
