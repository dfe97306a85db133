"""Structural schemas of custom resources: pruning and common checks."""

import re
from collections.abc import Iterator
from typing import Any

from kube.resource import JsonObject

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}

_TEXT: JsonObject = {"type": "string", "nullable": True}
_TEXTS: JsonObject = {"type": "object", "nullable": True, "additionalProperties": _TEXT}
_OWNER: JsonObject = {
    "type": "object",
    "properties": dict.fromkeys(("apiVersion", "kind", "name", "uid"), _TEXT),
}
METADATA: JsonObject = {
    "properties": {
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "finalizers": {"type": "array", "nullable": True, "items": _TEXT},
        "ownerReferences": {"type": "array", "nullable": True, "items": _OWNER},
    }
}


def prune(value: Any, schema: JsonObject, *, top: bool = False) -> Any:
    """Drop the fields that a schema does not know; those of every object are known at the top."""
    if isinstance(value, list):
        return [prune(each, schema.get("items", {})) for each in value]
    if not isinstance(value, dict) or schema.get("x-kubernetes-preserve-unknown-fields"):
        return value
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties")
    kept: JsonObject = {}
    for name, item in value.items():
        if top and name in ("apiVersion", "kind", "metadata"):
            kept[name] = item
        elif name in properties:
            kept[name] = prune(item, properties[name])
        elif others:
            kept[name] = prune(item, others) if isinstance(others, dict) else item
    return kept


def faults(value: Any, schema: JsonObject, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield (field, message) for each violation of the schema."""
    if not schema or (value is None and schema.get("nullable")):
        return
    if schema.get("x-kubernetes-int-or-string"):
        if not isinstance(value, int | str):
            yield path, "must be an integer or a string"
        return
    types = TYPES.get(schema.get("type", ""))
    if types and (not isinstance(value, types) or (isinstance(value, bool) and bool not in types)):
        yield path, f"must be of type {schema['type']}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield path, f"Unsupported value: {value!r}: supported values: {schema['enum']}"
    check = {
        bool: no_bounds,
        int: in_bounds,
        float: in_bounds,
        str: in_form,
        list: items,
        dict: members,
    }
    yield from check.get(type(value), no_bounds)(value, schema, path)


def no_bounds(value: Any, schema: JsonObject, path: str) -> Iterator[tuple[str, str]]:
    """Yield nothing: values of this type have no bounds."""
    yield from ()


def in_bounds(value: float, schema: JsonObject, path: str) -> Iterator[tuple[str, str]]:
    """Yield the faults of a number."""
    if value < schema.get("minimum", value):
        yield path, f"should be greater than or equal to {schema['minimum']}"
    if value > schema.get("maximum", value):
        yield path, f"should be less than or equal to {schema['maximum']}"


def in_form(value: str, schema: JsonObject, path: str) -> Iterator[tuple[str, str]]:
    """Yield the faults of a string."""
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield path, f"should match '{schema['pattern']}'"
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        yield path, "has a length that is not allowed"


def items(value: list[Any], schema: JsonObject, path: str) -> Iterator[tuple[str, str]]:
    """Yield the faults of a list and its items."""
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        yield path, "has a number of items that is not allowed"
    for position, item in enumerate(value):
        yield from faults(item, schema.get("items", {}), f"{path}[{position}]")


def members(value: JsonObject, schema: JsonObject, path: str) -> Iterator[tuple[str, str]]:
    """Yield the faults of a mapping and its members."""
    for name in schema.get("required", []):
        if name not in value:
            yield f"{path}.{name}".lstrip("."), "Required value"
    others = schema.get("additionalProperties")
    for name, item in value.items():
        member = schema.get("properties", {}).get(name, others if isinstance(others, dict) else {})
        yield from faults(item, member, f"{path}.{name}".lstrip("."))
