"""Checks constant arguments, such as regular expressions and formats, at compile time."""

from collections.abc import Iterator, Mapping, Sequence

from webhook.cel.cost import Meter
from webhook.cel.errors import EvaluationError
from webhook.cel.functions import FUNCTIONS, fault
from webhook.cel.library.formatting import check_format
from webhook.cel.syntax import ListNode, Literal, MapNode, Node, below
from webhook.cel.types import Type

# By function: the index of the checked argument.
_TRIED = {"matches": 1, "find": 1, "findAll": 1}
_TRIED |= dict.fromkeys(
    ("timestamp", "duration", "int", "uint", "double", "bool", "string", "format"), 0
)


def fault_of_constant(
    function: str, operands: Sequence[Node], types: Mapping[int, Type]
) -> tuple[Literal, EvaluationError] | None:
    """Return an invalid constant argument, and the error; `types` are by a node's id."""
    position = _TRIED.get(function)
    if position is None or not isinstance(constant := operands[position], Literal):
        return None
    if function == "format":
        items = operands[1].items if isinstance(operands[1], ListNode) else None
        types_of_items = (
            None if items is None else [list(_within(each, types)) for each, _ in items]
        )
        error = fault(check_format, constant.value, types_of_items)
    else:
        error = fault(FUNCTIONS[function], Meter(), *[""] * position, constant.value)
    return None if error is None else (constant, error)


def _within(node: Node, types: Mapping[int, Type]) -> Iterator[Type]:
    """Yield the type of a node, and of all items of a literal list or map."""
    yield types[id(node)]
    if isinstance(node, ListNode | MapNode):
        for child in below(node):
            yield from _within(child, types)
