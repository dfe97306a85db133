"""Parse an expression into nodes: CEL's grammar, by precedence."""

from collections.abc import Callable
from typing import Any, NoReturn

from webhook.cel.errors import CompileError
from webhook.cel.lexer import Token, tokens
from webhook.cel.syntax import Call, Ident, ListNode, Literal, MapNode, Node, Select, qualified
from webhook.cel.values import MAX_INT

MAX_DEPTH = 80  # parentheses, brackets and macros within each other
MAX_CHAIN = 200  # operators or selections after each other

RESERVED = {"as", "break", "const", "continue", "else", "for", "function", "if", "import", "in", "let", "loop"}
RESERVED |= {"namespace", "package", "return", "var", "void", "while"}
_CONSTANTS = {"true": True, "false": False, "null": None}
_PRECEDENCE = ("||", "&&", "< <= > >= == != in", "+ -", "* / %")
_LEVELS = {mark: level for level, marks in enumerate(_PRECEDENCE, start=1) for mark in marks.split()}
_LOGICAL = 2  # the level of `&&`


def parse(source: str) -> Node:
    """Return the expression that `source` says. CompileError names line, column and what was expected."""
    return _Parser(source).whole()


class _Parser:
    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = tokens(source)
        self.position = 0
        self.depth = 0

    def whole(self) -> Node:
        node = self.expression()
        if self.token.sort != "end":
            self.unexpected("an operator or the end")
        return node

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def take(self) -> Token:
        self.position += 1
        return self.tokens[self.position - 1]

    def taken(self, mark: str) -> bool:
        if self.token.sort == "mark" and self.token.text == mark:
            self.position += 1
            return True
        return False

    def expect(self, mark: str) -> None:
        if not self.taken(mark):
            self.unexpected(f"'{mark}'")

    def name(self) -> Token:
        if self.token.sort not in {"name", "escaped"} or self.token.text in {"in", *_CONSTANTS}:
            self.unexpected("the name of a field")
        return self.take()

    def unexpected(self, wanted: str) -> NoReturn:
        self.fail(self.token.at, f"syntax error: found {self.token.text[:40]!r}, expected {wanted}")

    def fail(self, at: int, text: str) -> NoReturn:
        raise CompileError(self.source, at, text)

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(self.token.at, f"nested more than {MAX_DEPTH} levels deep")
        condition = self.binary()
        at = self.token.at
        if self.taken("?"):
            yes = self.binary()
            self.expect(":")
            condition = Call(at, "_?_:_", None, [condition, yes, self.expression()])
        self.depth -= 1
        return condition

    def binary(self, lowest: int = 1) -> Node:
        left, chain = self.unary(), 0
        while self.token.sort in {"mark", "name"} and (level := _LEVELS.get(self.token.text, 0)) >= lowest:
            operator, chain = self.take(), chain + 1
            right = self.binary(level + 1)
            name = "@in" if operator.text == "in" else f"_{operator.text}_"
            if level <= _LOGICAL and isinstance(left, Call) and left.function == name:
                left.args.append(right)  # `a && b && c` is one node, as deep as its deepest term
                continue
            if chain > MAX_CHAIN:
                self.fail(operator.at, f"more than {MAX_CHAIN} operators after each other")
            left = Call(operator.at, name, None, [left, right])
        return left

    def unary(self) -> Node:
        token, count = self.token, 0
        if token.sort != "mark" or token.text not in {"!", "-"}:
            return self.members(self.primary())
        while self.taken(token.text):
            count += 1
        if token.text == "-" and count % 2 and self.token.sort == "literal" and type(self.token.value) in {int, float}:
            return self.members(Literal(token.at, -self.take().value))
        operand = self.members(self.primary())
        return Call(token.at, f"{token.text}_", None, [operand]) if count % 2 else operand

    def members(self, node: Node) -> Node:
        for _ in range(MAX_CHAIN):
            at = self.token.at
            if self.taken("."):
                node = self.member(node)
            elif self.taken("["):
                name = "_[?_]" if self.taken("?") else "_[_]"
                node = Call(at, name, None, [node, self.expression()])
                self.expect("]")
            elif self.token.text == "{" and self.token.sort == "mark" and (name := qualified(node)):
                self.take()
                node = MapNode(node.at, self.entries(self.field), name)
            else:
                return node
        return self.fail(self.token.at, f"more than {MAX_CHAIN} selections after each other")

    def member(self, node: Node) -> Node:
        if self.taken("?"):
            name = self.name()
            return Call(name.at, "_?._", None, [node, Literal(name.at, name.text)])
        name = self.name()
        if name.sort == "name" and self.taken("("):
            return Call(name.at, name.text, node, self.listed(")", self.expression))
        return Select(name.at, node, name.text)

    def primary(self) -> Node:
        token = self.take()
        if token.sort == "literal":
            if type(token.value) is int and token.value > MAX_INT:
                self.fail(token.at, f"{token.text}: integer out of range")
            return Literal(token.at, token.value)
        if token.sort == "name":
            return self.named(token)
        match token.text if token.sort == "mark" else "":
            case "(":
                node = self.expression()
                self.expect(")")
                return node
            case "[":
                return ListNode(token.at, self.listed("]", self.item))
            case "{":
                return MapNode(token.at, self.entries(self.expression))
            case "." if self.token.sort == "name":
                return self.named(self.take())
        self.position -= 1
        return self.unexpected("a value")

    def named(self, token: Token) -> Node:
        if token.text in _CONSTANTS:
            return Literal(token.at, _CONSTANTS[token.text])
        if token.text in RESERVED:
            self.fail(token.at, f"reserved identifier: {token.text}")
        if self.taken("("):
            return Call(token.at, token.text, None, self.listed(")", self.expression))
        return Ident(token.at, token.text)

    def listed(self, end: str, item: Callable[[], Any]) -> list[Any]:
        items: list[Any] = []
        while not self.taken(end):
            items.append(item())
            if not self.taken(","):
                self.expect(end)
                break
        return items

    def item(self) -> tuple[Node, bool]:
        optional = self.taken("?")
        return self.expression(), optional

    def entries(self, key: Callable[[], Node]) -> list[tuple[Node, Node, bool]]:
        def entry() -> tuple[Node, Node, bool]:
            optional, name = self.taken("?"), key()
            self.expect(":")
            return name, self.expression(), optional

        return self.listed("}", entry)

    def field(self) -> Node:
        token = self.name()
        return Literal(token.at, token.text)
