"""Parse an expression into nodes: CEL's grammar, by precedence."""

from collections.abc import Callable
from typing import NoReturn, TypeVar

from webhook.cel.errors import CompileError
from webhook.cel.lexer import Token, tokens
from webhook.cel.syntax import Call, Ident, ListNode, Literal, MapNode, Node, Select, qualified_name
from webhook.cel.values import MAX_INT

RESERVED = {
    "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop",
    "namespace", "package", "return", "var", "void", "while",
}  # fmt: skip
_PRECEDENCE = ("||", "&&", "< <= > >= == != in", "+ -", "* / %")
_LEVELS = {
    mark: level for level, marks in enumerate(_PRECEDENCE, start=1) for mark in marks.split()
}
_LOGICAL = 2  # the level of `&&`
T = TypeVar("T")


def parse(source: str) -> Node:
    """Parse an expression. Raises CompileError with line, column and the expected token."""
    parser = _Parser(source)
    node = parser.expression()
    if parser.token.sort != "end":
        parser.raise_unexpected("an operator or the end")
    return node


class _Parser:
    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = tokens(source)
        self.position = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def take(self) -> Token:
        self.position += 1
        return self.tokens[self.position - 1]

    def take_if(self, sort: str) -> bool:
        return self.token.sort == sort and bool(self.take())

    def expect(self, mark: str) -> None:
        if not self.take_if(mark):
            self.raise_unexpected(f"'{mark}'")

    def raise_unexpected(self, expected: str) -> NoReturn:
        self.fail(
            self.token.at, f"syntax error: found {self.token.text[:40]!r}, expected {expected}"
        )

    def fail(self, at: int, text: str) -> NoReturn:
        raise CompileError(self.source, at, text)

    def expression(self) -> Node:
        condition = self.binary()
        at = self.token.at
        if self.take_if("?"):
            yes = self.binary()
            self.expect(":")
            return Call(at, "_?_:_", None, [condition, yes, self.expression()])
        return condition

    def binary(self, lowest: int = 1) -> Node:
        left = self.unary()
        while (level := _LEVELS.get(self.token.sort, 0)) >= lowest:
            operator = self.take()
            right = self.binary(level + 1)
            name = "@in" if operator.sort == "in" else f"_{operator.sort}_"
            if level <= _LOGICAL and isinstance(left, Call) and left.function == name:
                left.args.append(right)  # `a && b && c` is one node, as deep as its deepest term
            else:
                left = Call(operator.at, name, None, [left, right])
        return left

    def unary(self) -> Node:
        first, count = self.token, 0
        while first.sort in {"!", "-"} and self.take_if(first.sort):
            count += 1
        if count % 2 == 0:
            return self.members(self.primary())
        if first.sort == "-" and type(self.token.value) in {int, float}:
            return self.members(Literal(first.at, -self.take().value))
        return Call(first.at, f"{first.sort}_", None, [self.members(self.primary())])

    def members(self, node: Node) -> Node:
        while True:
            at = self.token.at
            if self.take_if("."):
                is_optional, is_plain = self.take_if("?"), self.token.sort == "name"
                field = self.field()
                if is_optional:
                    node = Call(field.at, "_?._", None, [node, field])
                elif is_plain and self.take_if("("):
                    node = Call(field.at, field.value, node, self.parse_list(")", self.expression))
                else:
                    node = Select(field.at, node, field.value)
            elif self.take_if("["):
                name = "_[?_]" if self.take_if("?") else "_[_]"
                node = Call(at, name, None, [node, self.expression()])
                self.expect("]")
            elif self.token.sort == "{" and (name := qualified_name(node)):
                self.take()
                node = MapNode(node.at, self.parse_list("}", lambda: self.entry(self.field)), name)
            else:
                return node

    def primary(self) -> Node:
        token = self.take()
        match token.sort:
            case "literal":
                if type(token.value) is int and token.value > MAX_INT:
                    self.fail(token.at, f"{token.text}: integer out of range")
                return Literal(token.at, token.value)
            case "name":
                return self.parse_name(token)
            case "." if self.token.sort == "name":
                return self.parse_name(self.take())
            case "(":
                node = self.expression()
                self.expect(")")
                return node
            case "[":
                return ListNode(token.at, self.parse_list("]", self.item))
            case "{":
                return MapNode(token.at, self.parse_list("}", lambda: self.entry(self.expression)))
        self.position -= 1
        return self.raise_unexpected("a value")

    def parse_name(self, token: Token) -> Node:
        if token.text in RESERVED:
            self.fail(token.at, f"reserved identifier: {token.text}")
        if self.take_if("("):
            return Call(token.at, token.text, None, self.parse_list(")", self.expression))
        return Ident(token.at, token.text)

    def parse_list(self, end: str, item: Callable[[], T]) -> list[T]:
        items: list[T] = []
        while not self.take_if(end):
            items.append(item())
            if not self.take_if(","):
                self.expect(end)
                break
        return items

    def item(self) -> tuple[Node, bool]:
        optional = self.take_if("?")
        return self.expression(), optional

    def entry(self, key: Callable[[], Node]) -> tuple[Node, Node, bool]:
        optional, name = self.take_if("?"), key()
        self.expect(":")
        return name, self.expression(), optional

    def field(self) -> Literal:
        if self.token.sort not in {"name", "escaped"}:
            self.raise_unexpected("the name of a field")
        token = self.take()
        return Literal(token.at, token.text)
