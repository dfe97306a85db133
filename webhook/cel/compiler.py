"""Compiles an expression to a Python closure, and checks names, functions and types."""

from difflib import get_close_matches
from typing import NoReturn

from config.faults import did_you_mean
from webhook.cel import closures, syntax
from webhook.cel.constants import fault_of_constant
from webhook.cel.errors import CompileError, UndefinedFieldError
from webhook.cel.functions import FUNCTIONS, Code
from webhook.cel.macros import MACROS, Macro
from webhook.cel.syntax import Call, Ident, ListNode, Literal, MapNode, Node, Select, qualified_name
from webhook.cel.types import (
    BOOL,
    DYN,
    UNKNOWN,
    Declarations,
    Signature,
    Type,
    assignable,
    can_stand_beside,
    format_arguments,
    parse_type,
    result_type,
)
from webhook.cel.values import NAMES, TypeValue

TYPE_NAMES = frozenset(NAMES.values())
Typed = tuple[Type, Code]  # the result of compiling a node: its static type and its closure


class Compiler:
    """Compiles one expression; `size` is the length of its frames, `nodes` its minimum cost."""

    def __init__(self, source: str, declared: Declarations) -> None:
        self.source = source
        self.declared = declared
        self.homogeneous = True  # reject lists and maps of mixed types, as the API server does
        self.scope = {
            name: (type_, slot)
            for slot, (name, type_) in enumerate(declared.variables.items(), start=1)
        }
        self.size = len(self.scope) + 1
        self.nodes = 0
        self.undefined: list[CompileError] = []  # all of them, since the rest still compiles
        self.types: dict[int, Type] = {}  # by the id of a node; all nodes stay alive

    def fail(self, node: Node, text: str) -> NoReturn:
        """Raise CompileError at `node`."""
        raise CompileError(self.source, node.at, text)

    def compile(self, node: Node) -> Typed:
        """Return the type and the closure of `node`."""
        self.nodes += 1
        typed = self._compile(node)
        self.types[id(node)] = typed[0]
        return typed

    def _compile(self, node: Node) -> Typed:
        name = qualified_name(node)
        if name in TYPE_NAMES and name.split(".")[0] not in self.scope:
            return Type("type", (parse_type(name),)), closures.constant(TypeValue(name))
        match node:
            case Literal():
                return parse_type(NAMES[type(node.value)]), closures.constant(node.value)
            case Ident():
                return self._variable(node)
            case Select():
                return self._selection(node)
            case Call():
                return self._call(node)
            case ListNode():
                return self._list(node)
            case MapNode():
                return self._map(node)

    def _variable(self, node: Ident) -> Typed:
        if node.name not in self.scope:
            hint = did_you_mean(node.name, self.scope)
            self.fail(node, f"undeclared reference to '{node.name}'{hint}")
        type_, slot = self.scope[node.name]
        return type_, lambda frame: frame[slot]

    def _selection(self, node: Select) -> Typed:
        path, base = [node], node.operand
        while isinstance(base, Select):
            path.append(base)
            base = base.operand
        path.reverse()
        self.nodes += len(path) - 1
        type_, code = self.compile(base)
        for selection in path:
            type_ = self._field(selection, type_, selection.field)
        return type_, closures.path_of(code, [each.field for each in path])

    def _field(self, node: Node, operand: Type, field: str) -> Type:
        """Return the type of a field; an optional if the operand is one."""
        if operand.name == "optional_type":
            return Type("optional_type", (self._field(node, operand.params[0], field),))
        fields = self.declared.objects.get(operand.name)
        if fields is not None:
            if field not in fields:
                object = operand.name.rpartition(".")[2]
                hint = did_you_mean(field, fields)
                text = f"undefined field '{field}' of '{object}'{hint}"
                self.undefined.append(UndefinedFieldError(self.source, node.at, text))
            return fields.get(field, DYN)
        if not operand.may_be("map") and not operand.name.startswith("Object"):
            self.fail(node, f"type '{operand}' does not support field selection")
        return operand.params[1] if operand.params else DYN

    def _call(self, node: Call) -> Typed:
        if node.target is not None:
            name = f"{qualified_name(node.target)}.{node.function}"
            if name in FUNCTIONS:
                return self._call(Call(node.at, name, None, node.args))
            if macro := MACROS.get((node.function, len(node.args))):
                return self._macro(node, node.target, macro)
        elif node.function == "has" and len(node.args) == 1:
            return self._has(node.args[0])
        elif node.function == "_?._":
            return self._optional_field(*node.args)
        function = FUNCTIONS.get(node.function)
        if function is None:
            similar = get_close_matches(node.function, FUNCTIONS, n=1)
            hint = f'; did you mean "{similar[0]}()"?' if similar else ""
            self.fail(node, f"undeclared reference to '{node.function}()'{hint}")
        operands, homogeneous = syntax.below(node), self.homogeneous
        self.homogeneous = homogeneous and node.function != "format"
        self.nodes += 1  # a call takes about twice as long as another node
        types, codes = self._each(operands)
        self.homogeneous = homogeneous
        result = self._result(node, [version.signature for version in function.versions], types, {})
        self._try_constants(node.function, operands)
        return result, function.code(codes)

    def _try_constants(self, function: str, operands: list[Node]) -> None:
        if fault := fault_of_constant(function, operands, self.types):
            self.fail(fault[0], f"invalid {function} argument: {fault[1]}")

    def _each(self, nodes: list[Node]) -> tuple[list[Type], list[Code]]:
        compiled = [self.compile(node) for node in nodes]
        return [type_ for type_, _ in compiled], [code for _, code in compiled]

    def _result(
        self, node: Call, signatures: list[Signature], types: list[Type], bound: dict[str, Type]
    ) -> Type:
        is_member = node.target is not None
        of_form = [each for each in signatures if each.is_member is is_member]
        result = result_type(of_form, types, bound)
        if result is None:
            takes = sorted({each.takes for each in signatures})
            hint = f"; it takes {' or '.join(takes)}" if len(takes) <= 4 else ""
            call = f"'{node.function}' applied to '{format_arguments(types, is_member=is_member)}'"
            self.fail(node, f"found no matching overload for {call}{hint}")
        return result

    def _has(self, node: Node) -> Typed:
        if not isinstance(node, Select):
            hint = "it takes a field, such as has(object.spec)"
            self.fail(node, f"invalid argument to has() macro; {hint}")
        type_, code = self.compile(node.operand)
        self._field(node, type_, node.field)
        return BOOL, closures.test(code, node.field)

    def _optional_field(self, operand: Node, field: Node) -> Typed:
        assert isinstance(field, Literal)
        type_, code = self.compile(operand)
        field_type = self._field(field, type_, field.value)
        field_type = (
            field_type if type_.name == "optional_type" else Type("optional_type", (field_type,))
        )
        return field_type, FUNCTIONS["_[?_]"].code([code, closures.constant(field.value)])

    def _macro(self, node: Call, target: Node, macro: Macro) -> Typed:
        names = []
        for arg in node.args[: macro.variables]:
            if not isinstance(arg, Ident):
                self.fail(arg, "argument must be a simple name")
            names.append(arg.name)
        if len(set(names)) < len(names):
            self.fail(node.args[1], f"duplicate variable name {names[0]!r}")
        type_, over = self.compile(target)
        if not type_.may_be(*macro.ranges):
            text = f"expression of type '{type_}' cannot be range of a comprehension"
            self.fail(target, f"{text} (must be list, map, or dynamic)")
        bound, outer, before = macro.bind_types(type_), self.scope, self.nodes
        slots = tuple(range(self.size, self.size + len(names)))
        self.size += len(names)
        variables = zip(bound.values(), slots, strict=False)
        self.scope = outer | dict(zip(names, variables, strict=False))
        types, codes = self._each(node.args[macro.variables :])
        self.scope = outer
        result = self._result(node, [macro.signature], [type_, *types], bound)
        return result, macro.code(over, slots, codes, self.nodes - before + 4)

    def _list(self, node: ListNode) -> Typed:
        items = [(*self._item(item, optional), optional) for item, optional in node.items]
        type_ = self._aggregate(node, [type_ for type_, _, _ in items])
        return Type("list", (type_,)), closures.list_of([each[1:] for each in items])

    def _item(self, node: Node, optional: bool) -> Typed:
        type_, code = self.compile(node)
        if not optional:
            return type_, code
        if not type_.may_be("optional_type"):
            self.fail(node, f"expected an optional value after '?', found {type_}")
        return type_.params[0] if type_.params else DYN, code

    def _aggregate(self, node: Node, types: list[Type]) -> Type:
        for type in types if self.homogeneous else ():
            if not can_stand_beside(types[0], type):
                self.fail(node, f"expected type '{types[0]}' but found '{type}'")
        if not types:
            return UNKNOWN
        if DYN in types:
            return DYN
        return types[0] if all(assignable(types[0], each, {}) for each in types) else DYN

    def _map(self, node: MapNode) -> Typed:
        structs = {"JSONPatch", "Object"} if self.declared.structs else set()
        if node.name and node.name.split(".")[0] not in structs:
            self.fail(node, f"undeclared reference to '{node.name}'")
        entries, keys, types = [], [], []
        for key, value, optional in node.entries:
            (key_type, key_code), (type_, code) = self.compile(key), self._item(value, optional)
            if node.name:
                self._struct_field(node.name, key, type_)
            elif not key_type.may_be("string", "int", "uint", "bool"):
                self.fail(key, f"unsupported key type: {key_type}")
            entries.append((key_code, code, optional))
            keys.append(key_type)
            types.append(type_)
        code = closures.map_of(entries)
        if node.name:
            return Type(node.name), code
        return Type("map", (self._aggregate(node, keys), self._aggregate(node, types))), code

    def _struct_field(self, struct: str, key: Node, given: Type) -> None:
        assert isinstance(key, Literal)
        if struct != "JSONPatch" and given.name.startswith("Object"):
            wanted = Type(f"{struct}.{key.value}")
        else:
            wanted = self._field(key, Type(struct), key.value)
        if not assignable(wanted, given, {}):
            text = f"expected type of field '{key.value}' is '{wanted}'"
            self.fail(key, f"{text} but provided type is '{given}'")
