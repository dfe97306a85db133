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
    """`operand.field`; with `test`, `has(operand.field)`; with `optional`, `operand.?field`."""

    operand: Node
    field: str
    test: bool = False
    optional: bool = False


@dataclass(slots=True)
class Call(Node):
    """A function or operator (by its name in cel-spec, such as `_+_`); `target` for `target.function(args)`."""

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


@dataclass(slots=True)
class Comprehension(Node):
    """A macro over `target` that binds `names` in each of `args`."""

    macro: str
    target: Node
    names: tuple[str, ...]
    args: list[Node]
