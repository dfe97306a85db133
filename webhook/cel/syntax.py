"""The nodes of a parsed expression; `at` is the offset in its text."""

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Node:
    """Any part of an expression."""

    at: int


@dataclass(slots=True)
class Literal(Node):
    """A constant."""

    value: Any


@dataclass(slots=True)
class Ident(Node):
    """A variable, or a type by its name."""

    name: str


@dataclass(slots=True)
class Select(Node):
    """`operand.field`."""

    operand: Node
    field: str


@dataclass(slots=True)
class Call(Node):
    """A function, macro or operator (by its name in cel-spec, such as `_+_`); `target` for `target.function(args)`."""

    function: str
    target: Node | None
    args: list[Node]


@dataclass(slots=True)
class ListNode(Node):
    """`[a, ?b]`: each item and whether it has a question mark."""

    items: list[tuple[Node, bool]]


@dataclass(slots=True)
class MapNode(Node):
    """`{k: v}`, or `Name{field: v}` where it has a name; each entry is (key, value, optional)."""

    entries: list[tuple[Node, Node, bool]]
    name: str = ""


def qualified(node: Node | None) -> str:
    """Return `a.b.c` for a chain of names, "" for anything else."""
    if isinstance(node, Select):
        prefix = qualified(node.operand)
        return prefix and f"{prefix}.{node.field}"
    return node.name if isinstance(node, Ident) else ""
