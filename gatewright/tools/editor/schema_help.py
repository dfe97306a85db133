"""Complete and explain the fields of policy sets and case files, by their JSON Schemas."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from gatewright.explain import editor_schemas
from gatewright.explain.policy_pages import to_yaml_line
from gatewright.tools.editor.yaml_parts import TextPart
from webhook.policy_sets.catalogue import catalogue

JsonSchema = Mapping[str, Any]
Path = tuple[str, ...]
ITEM = "[]"
LINE = re.compile(r"(?P<indent> *)(?P<dashes>(?:- +|-$)*)(?:(?P<key>[\w./-]+) *:(?P<value> .*|$))?")
CHOOSES = re.compile(r"^ *(kind|policy): *([\w-]+) *$", re.MULTILINE)  # these choose the schema
OF_CASES = re.compile(r"^(?:cases|policy|policies):", re.MULTILINE)
OF_POLICY_SET = re.compile(
    r"^apiVersion: *gatewright\.io/|^kind: *\w*(?:Admission|Exc)", re.MULTILINE
)
WORD = re.compile(r"[\w./-]*$")


@dataclass(frozen=True, slots=True)
class SchemaEntry:
    """A possible field or value, with its meaning."""

    text: str
    meaning: str = ""
    is_field: bool = False


def completions(part: TextPart, line: int, column: int) -> list[SchemaEntry]:
    """Return the possible fields or values at a position (line and column from 0)."""
    before = part.text.split("\n")[: line + 1]
    before[-1] = before[-1][:column]
    match = LINE.match(before[-1])
    if match is None or not (schema := _schema(part.text)):
        return []
    chosen = dict(CHOOSES.findall(part.text))
    if match["key"] == "policy":
        return [SchemaEntry(name, each.summary) for name, each in catalogue().items()]
    if match["key"]:
        path = (*path_at(before), match["key"])
        return list(_values(_below(schema, path, chosen)))
    if WORD.sub("", before[-1][match.end() :]):
        return []
    schemas = list(_below(schema, path_at(before), chosen))
    fields = [
        SchemaEntry(name, property.get("description", ""), is_field=True)
        for schema in schemas
        for name, property in schema.get("properties", {}).items()
    ]
    return list(dict.fromkeys([*fields, *_values(schemas)]))


def meaning(part: TextPart, line: int) -> str:
    """Return the meaning of the field on a line, in Markdown; "" for an unknown field."""
    before = part.text.split("\n")[: line + 1]
    match = LINE.match(before[-1])
    if match is None or not match["key"] or not (schema := _schema(part.text)):
        return ""
    value = (match["value"] or "").strip()
    if match["key"] == "policy" and value in catalogue():
        return f"**{value}**: {catalogue()[value].summary}"
    path = (*path_at(before), match["key"])
    for subschema in _below(schema, path, dict(CHOOSES.findall(part.text))):
        if "description" in subschema:
            default = subschema.get("default")
            more = "" if default is None else f" Default: `{to_yaml_line(default)}`."
            return f"**{match['key']}**: {subschema['description'].removesuffix('.')}.{more}"
    return ""


def path_at(lines: Sequence[str]) -> Path:
    """Return the path of the object or list with the last line, by the indentation."""
    path: list[str] = []
    indent: int | None = None
    for text in reversed(lines):
        match = LINE.match(text)
        if (
            match is None
            or (indent is not None and not text.strip(" -"))
            or text.lstrip()[:1] == "#"
        ):
            continue
        column = len(match["indent"] + match["dashes"])
        if indent is None:
            indent = column
        elif match["key"] and (column < indent or (column == indent and path[:1] == [ITEM])):
            path.insert(0, match["key"])
            indent = column
        if match["dashes"] and len(match["indent"]) < indent <= column:
            path.insert(0, ITEM)
            indent = len(match["indent"])
    return tuple(path)


@cache
def _policy_set() -> JsonSchema:
    return editor_schemas.policy_set(catalogue().values())


@cache
def _cases() -> JsonSchema:
    return editor_schemas.cases()


def _schema(text: str) -> JsonSchema | None:
    if OF_POLICY_SET.search(text):
        return _policy_set()
    return _cases() if OF_CASES.search(text) else None


def _below(root: JsonSchema, path: Path, chosen: Mapping[str, str]) -> Iterator[JsonSchema]:
    """Yield the schemas at a path, with every alternative; `chosen` decides conditions."""
    schemas = [root]
    for step in path:
        whole = [each for schema in schemas for each in _whole(schema, root, chosen)]
        schemas = [below for each in whole for below in _step(each, step)]
    for schema in schemas:
        yield from _whole(schema, root, chosen)


def _step(schema: JsonSchema, step: str) -> Iterator[JsonSchema]:
    if step == ITEM:
        yield from (schema["items"],) if "items" in schema else ()
    elif step in schema.get("properties", {}):
        yield schema["properties"][step]
    elif isinstance(schema.get("additionalProperties"), Mapping):
        yield schema["additionalProperties"]


def _whole(schema: JsonSchema, root: JsonSchema, chosen: Mapping[str, str]) -> Iterator[JsonSchema]:
    """Yield a schema, and the schemas that it combines or refers to."""
    yield schema
    parts = [*schema.get("allOf", ()), *schema.get("anyOf", ())]
    if "$ref" in schema:
        parts.append(root["$defs"][schema["$ref"].rpartition("/")[2]])
    if "if" in schema:
        required = schema["if"]["properties"].items()
        if all(chosen.get(name) == each["const"] for name, each in required):
            parts.append(schema["then"])
    for part in parts:
        yield from _whole(part, root, chosen)


def _values(schemas: Iterable[JsonSchema]) -> Iterator[SchemaEntry]:
    for schema in schemas:
        values = [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())]
        if schema.get("type") == "boolean":
            values += [True, False]
        yield from (SchemaEntry(to_yaml_line(each)) for each in values)
