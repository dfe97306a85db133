"""Check an expression before it runs: names, functions, numbers of arguments, types. Returns the type of its result."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import NoReturn

from config.faults import did_you_mean
from webhook.cel.errors import CelError, CompileError
from webhook.cel.format_check import format_fault
from webhook.cel.functions import FUNCTIONS
from webhook.cel.parser import qualified
from webhook.cel.syntax import Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select
from webhook.cel.types import (
    BOOL,
    DYN,
    INT,
    Type,
    assignable,
    joined,
    list_of,
    map_of,
    optional_of,
    parse_type,
    substituted,
)
from webhook.cel.values import NAMES

TYPE_NAMES = frozenset(NAMES.values()) | {f"net.{name}" for name in ("IP", "CIDR")}
TYPE_NAMES |= {f"kubernetes.{name}" for name in ("URL", "Quantity", "Semver")}
_STATIC = {"google.protobuf.Timestamp": "timestamp", "google.protobuf.Duration": "duration"}
_LITERALS = {"matches": 1, "find": 1, "findAll": 1}  # the argument that is tried at once
_LITERALS |= dict.fromkeys(("timestamp", "duration", "int", "uint", "double", "bool", "string"), 0)


class Checker:
    """Checks one expression against declared variables and the fields of declared object types."""

    def __init__(
        self,
        source: str,
        variables: Mapping[str, Type],
        objects: Mapping[str, Mapping[str, Type]],
        structs: bool,
        homogeneous: bool,
    ) -> None:
        self.source = source
        self.variables = dict(variables)
        self.objects = objects
        self.structs = structs
        self.homogeneous = homogeneous

    def _fail(self, node: Node, text: str) -> NoReturn:
        raise CompileError(self.source, node.at, text)

    def check(self, node: Node) -> Type:
        """Return the type of `node`."""
        match node:
            case Literal():
                return parse_type(_STATIC.get(NAMES[type(node.value)], NAMES[type(node.value)]))
            case Ident():
                return self._identifier(node)
            case Select():
                return self._selection(node)
            case Call():
                return self._call(node)
            case ListNode():
                return list_of(self._aggregate(node, [self._item(each, optional) for each, optional in node.items]))
            case MapNode():
                return self._map(node)
        assert isinstance(node, Comprehension)
        return self._comprehension(node)

    def _identifier(self, node: Ident) -> Type:
        found = self.variables.get(node.name)
        if found is not None:
            return found
        if node.name in TYPE_NAMES:
            return Type("type", (Type(node.name),))
        return self._fail(node, f"undeclared reference to '{node.name}'{did_you_mean(node.name, self.variables)}")

    def _selection(self, node: Select) -> Type:
        if (name := qualified(node)) in TYPE_NAMES and name.split(".")[0] not in self.variables:
            return Type("type", (Type(_STATIC.get(name, name)),))
        operand = self.check(node.operand)
        chained = operand.name == "optional_type"
        found = self._field(node, operand.params[0] if chained and operand.params else operand)
        if node.test:
            return BOOL
        return optional_of(found) if (chained or node.optional) else found

    def _field(self, node: Select, operand: Type) -> Type:
        fields = self.objects.get(operand.name)
        if fields is not None:
            if node.field in fields:
                return fields[node.field]
            known = did_you_mean(node.field, fields)
            self._fail(node, f"undefined field '{node.field}' of {operand.short}{known}")
        if operand.name == "map" and operand.params:
            return operand.params[1]
        if operand.name not in {"dyn", "map"} and not operand.is_parameter and not operand.name.startswith("Object"):
            self._fail(node, f"type '{operand}' does not support field selection")
        return DYN

    def _call(self, node: Call) -> Type:
        operands = [*([] if node.target is None else [node.target]), *node.args]
        homogeneous, self.homogeneous = self.homogeneous, self.homogeneous and node.function != "format"
        types = [self.check(operand) for operand in operands]
        if node.function == "format" and len(operands) == 2:
            self._format(*operands)
        self.homogeneous = homogeneous
        if node.function in {"_&&_", "_||_"}:
            wrong = next((each for each, type_ in zip(operands, types, strict=True) if not type_.may_be("bool")), None)
            if wrong is None:
                return BOOL
            self._mismatch(node, types)
        if node.function == "_?_:_":
            if not types[0].may_be("bool") or not (
                assignable(types[1], types[2], {}) or assignable(types[2], types[1], {})
            ):
                self._mismatch(node, types)
            return joined(types[1:])
        known = FUNCTIONS.get(node.function)
        if known is None:
            meant = get_close_matches(node.function, FUNCTIONS, n=1)
            hint = f'; did you mean "{meant[0]}()"?' if meant else ""
            self._fail(node, f"undeclared reference to '{node.function}()'{hint}")
        results = []
        for signature, _ in known.versions:
            bound: dict[str, Type] = {}
            fits = len(signature.params) == len(types) and signature.is_member == (node.target is not None)
            if fits and all(
                assignable(want, found, bound) for want, found in zip(signature.params, types, strict=True)
            ):
                results.append(substituted(signature.result, bound))
        if not results:
            self._mismatch(node, types)
        self._literals(node, operands)
        return results[0] if all(each == results[0] for each in results) else DYN

    def _mismatch(self, node: Call, types: list[Type]) -> NoReturn:
        shown = ", ".join(map(str, types if node.target is None else types[1:]))
        shown = f"({shown})" if node.target is None else f"{types[0]}.({shown})"
        known = FUNCTIONS.get(node.function)
        takes = {each.takes for each, _ in known.versions} if known else {"(bool, bool)"}
        hint = f"; it takes {' or '.join(sorted(takes))}" if len(takes) <= 4 and node.function != "_?_:_" else ""
        self._fail(node, f"found no matching overload for '{node.function}' applied to '{shown}'{hint}")

    def _literals(self, node: Call, operands: list[Node]) -> None:
        """Try what a constant text says, such as a regular expression, before any object comes."""
        position = _LITERALS.get(node.function)
        if position is not None and position < len(operands) and isinstance(operands[position], Literal):
            value = operands[position].value  # type: ignore[attr-defined]
            samples = ("",) * position + (value,)
            try:
                FUNCTIONS[node.function].resolve(*samples)(*samples)
            except CelError as error:
                self._fail(operands[position], f"invalid {node.function} argument: {error}")

    def _format(self, text: Node, items: Node) -> None:
        if isinstance(text, Literal) and isinstance(items, ListNode):
            fault = format_fault(text.value, [self.check(item) for item, _ in items.items])
            if fault is not None:
                position, what = fault
                self._fail(items if position is None else items.items[position][0], what)

    def _item(self, node: Node, optional: bool) -> Type:
        found = self.check(node)
        if not optional:
            return found
        if not found.may_be("optional_type"):
            self._fail(node, f"expected an optional value after '?', found {found}")
        return found.params[0] if found.params else DYN

    def _aggregate(self, node: Node, types: list[Type]) -> Type:
        if self.homogeneous and types:
            for each in types:
                if each != types[0] and not (each.params and assignable(types[0], each, {})):
                    self._fail(node, f"expected type '{types[0]}' but found '{each}'")
        return joined(types) if types else DYN

    def _map(self, node: MapNode) -> Type:
        if node.name:
            if not self.structs or not (node.name in {"Object", "JSONPatch"} or node.name.startswith("Object.")):
                self._fail(node, f"undeclared reference to '{node.name}'")
            for key, value, optional in node.entries:
                self._struct_field(node, str(getattr(key, "value", "")), self._item(value, optional), key)
            return Type(node.name)
        keys = [self.check(key) for key, _, _ in node.entries]
        for (key, _, _), found in zip(node.entries, keys, strict=True):
            if found.name not in {"string", "int", "uint", "bool", "dyn"}:
                self._fail(key, f"unsupported key type: {found}")
        return map_of(
            self._aggregate(node, keys), self._aggregate(node, [self._item(v, o) for _, v, o in node.entries])
        )

    def _struct_field(self, node: MapNode, field: str, found: Type, key: Node) -> None:
        if node.name == "JSONPatch":
            wanted = {"op": "string", "path": "string", "from": "string", "value": "dyn"}
            if field not in wanted:
                self._fail(key, f"undefined field '{field}'{did_you_mean(field, wanted)}")
            expected = wanted[field]
        else:
            expected = f"{node.name}.{field}" if found.name.startswith("Object") else "dyn"
        if not assignable(parse_type(expected), found, {}):
            self._fail(key, f"expected type of field '{field}' is '{expected}' but provided type is '{found}'")

    def _comprehension(self, node: Comprehension) -> Type:
        target = self.check(node.target)
        inner = self._items(node, target)
        outer = dict(self.variables)
        self.variables.update(zip(node.names, inner, strict=False))
        types = [self.check(arg) for arg in node.args]
        self.variables = outer
        return self._result(node, target, types, inner)

    def _items(self, node: Comprehension, target: Type) -> tuple[Type, ...]:
        """Return the types that the variables of a macro have."""
        wanted = {"optMap": {"optional_type"}, "optFlatMap": {"optional_type"}, "sortBy": {"list"}}
        if target.name not in wanted.get(node.macro, {"list", "map"}) and not target.may_be("dyn"):
            text = f"expression of type '{target}' cannot be range of a comprehension (must be list, map, or dynamic)"
            self._fail(node.target, text)
        params = target.params or (DYN, DYN)
        if target.name == "list" and len(node.names) > 1:
            return INT, params[0]
        return params

    def _result(self, node: Comprehension, target: Type, types: list[Type], inner: tuple[Type, ...]) -> Type:
        last = types[-1]
        if node.macro in {"all", "exists", "exists_one", "existsOne", "filter"}:
            if not last.may_be("bool"):
                self._fail(
                    node.args[-1],
                    f"found no matching overload for '{node.macro}' applied to '({last})'; it takes a bool",
                )
            return list_of(inner[0]) if node.macro == "filter" else BOOL
        if len(types) > 1 and not types[0].may_be("bool"):
            self._fail(
                node.args[0],
                f"found no matching overload for '{node.macro}' applied to '({types[0]})'; it takes a bool",
            )
        match node.macro:
            case "map" | "transformList":
                return list_of(last)
            case "transformMap":
                return map_of(inner[0], last)
            case "transformMapEntry":
                return last
            case "sortBy":
                return target
        return optional_of(last) if node.macro == "optMap" else last
