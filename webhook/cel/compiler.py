"""Compile a checked expression to Python closures, each of which takes the frame of an evaluation."""

from webhook.cel.checker import TYPE_NAMES
from webhook.cel.closures import (
    call,
    conditional,
    constant,
    constant_equality,
    constant_texts,
    equality,
    in_constants,
    indexed,
    list_of,
    logic,
    map_of,
    path_of,
    raising,
    test,
)
from webhook.cel.frames import Code
from webhook.cel.functions import FUNCTIONS, Function
from webhook.cel.macros import compile_macro
from webhook.cel.parser import qualified
from webhook.cel.syntax import Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select
from webhook.cel.values import TypeValue, optional_index


class Compiler:
    """Compiles one expression; `size` is how long its frames are."""

    def __init__(self, names: list[str]) -> None:
        self.slots = {name: slot for slot, name in enumerate(names, start=1)}
        self.used = self.size = len(names) + 1
        self.nodes = 0

    def compile(self, node: Node) -> Code:
        """Return the closure of `node`."""
        self.nodes += 1
        match node:
            case Literal():
                return constant(node.value)
            case Ident():
                return self._identifier(node)
            case Select():
                return self._selection(node)
            case Call():
                return self._call(node)
            case ListNode():
                return list_of([(self.compile(item), optional) for item, optional in node.items])
            case MapNode():
                entries = [(self.compile(key), self.compile(value), optional) for key, value, optional in node.entries]
                return map_of(entries)
        assert isinstance(node, Comprehension)
        return self._comprehension(node)

    def _identifier(self, node: Ident) -> Code:
        slot = self.slots.get(node.name)
        if slot is not None:
            return lambda frame: frame[slot]
        if node.name in TYPE_NAMES:
            return constant(TypeValue(node.name))
        return raising(f"no such attribute(s): {node.name}")

    def _selection(self, node: Select) -> Code:
        name = qualified(node)
        if name in TYPE_NAMES and name.split(".")[0] not in self.slots:
            return constant(TypeValue(name))
        if node.optional:
            operand, field = self.compile(node.operand), node.field
            return lambda frame: optional_index(operand(frame), field)
        path, base = [node.field], node.operand
        while isinstance(base, Select) and not base.test and not base.optional and qualified(base) not in TYPE_NAMES:
            path.append(base.field)
            base = base.operand
        path.reverse()
        if node.test:
            return test(self.compile(base), path[:-1], path[-1])
        return path_of(self.compile(base), path)

    def _call(self, node: Call) -> Code:
        operands = [*([] if node.target is None else [node.target]), *node.args]
        match node.function:
            case "_&&_":
                return logic([self.compile(operand) for operand in operands], absorbing=False)
            case "_||_":
                return logic([self.compile(operand) for operand in operands], absorbing=True)
            case "_?_:_":
                return conditional(*(self.compile(operand) for operand in operands))
            case "_==_" | "_!=_":
                left, right = map(self.compile, operands)
                texts = [arg.value for arg in operands if isinstance(arg, Literal) and type(arg.value) in {str, bool}]
                if len(texts) == 1:
                    other = left if isinstance(operands[1], Literal) else right
                    return constant_equality(other, texts[0], wanted=node.function == "_==_")
                return equality(left, right, wanted=node.function == "_==_")
            case "_[_]" | "_[?_]":
                container, key = map(self.compile, operands)
                return indexed(container, key, optional=node.function == "_[?_]")
            case "@in" if (items := constant_texts(operands[1])) is not None:
                return in_constants(self.compile(operands[0]), items)
        entry = FUNCTIONS.get(node.function) or Function(node.function)
        return call(entry, [self.compile(operand) for operand in operands])

    def _comprehension(self, node: Comprehension) -> Code:
        target = self.compile(node.target)
        outer, used, before = dict(self.slots), self.used, self.nodes
        slots = range(self.used, self.used + len(node.names))
        self.slots.update(zip(node.names, slots, strict=True))
        self.used += len(node.names)
        self.size = max(self.size, self.used)
        args = [self.compile(arg) for arg in node.args]
        self.slots, self.used = outer, used
        return compile_macro(node.macro, target, tuple(slots), args, self.nodes - before + 4)
