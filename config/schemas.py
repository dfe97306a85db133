"""The fields of objects: by the API server's OpenAPI, and by the types of custom kinds.

`openapi.json` is generated from the OpenAPI (v3) of a real API server by `python -m
tests.config.openapi`. A field's value there is the name of its type: `T` is an object, `[T` a list,
`[T key,key` a list whose items have these keys (`x-kubernetes-list-map-keys`), `{T` an object with
values of type T; "" is a scalar or any value.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from config import crds
from config.faults import did_you_mean

SchemaFields = Mapping[str, str]
FILE = Path(__file__).parent / "openapi.json"
METADATA = "meta.v1.ObjectMeta"


SESSIONS = (
    "v1/PodAttachOptions",
    "v1/PodExecOptions",
)  # which the OpenAPI has as parameters of a URL only
SESSION = dict.fromkeys(
    ("apiVersion", "kind", "command", "container", "stderr", "stdin", "stdout", "tty"), ""
)


@cache
def _built_in() -> dict[str, Any]:
    found = orjson.loads(FILE.read_bytes())
    found["kinds"].update(dict.fromkeys(SESSIONS, "Session"))
    found["types"]["Session"] = SESSION
    return found  # type: ignore[no-any-return]


@cache
def _custom() -> tuple[dict[str, str], dict[str, SchemaFields]]:
    """Return the name of the root type of each custom kind, and all types by name."""
    kinds: dict[str, str] = {}
    types: dict[str, SchemaFields] = {}
    for kind in crds.kinds():
        about = kind.definition
        metadata = {"apiVersion": "", "kind": "", "metadata": METADATA}
        name = f"{about.api_version}.{about.kind}"
        collect(crds.schema(kind), name, types)
        types[name] = {**types[name], **metadata}
        kinds[f"{about.api_version}/{about.kind}"] = name
    return kinds, types


def collect(schema: Mapping[str, Any], name: str, types: dict[str, SchemaFields]) -> str:
    """Add the type `name` of an OpenAPI schema, and nested types, to `types`.

    Return its name as a field's value.
    """
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return ""
    if properties := schema.get("properties"):
        types[name] = {
            field: collect(each, f"{name}.{field}", types) for field, each in properties.items()
        }
        return name
    for prefix, below in (("[", schema.get("items")), ("{", schema.get("additionalProperties"))):
        if isinstance(below, Mapping):
            inner = collect(below, name, types)
            return f"{prefix}{inner}" if inner else ""
    return ""


def root_type(api_version: str, kind: str) -> str | None:
    """Return the name of a kind's type; None if its fields are unknown."""
    return _custom()[0].get(f"{api_version}/{kind}") or _built_in()["kinds"].get(
        f"{api_version}/{kind}"
    )


def fields_of(type: str) -> SchemaFields:
    """Return the fields of a type by name, with their types.

    Raises KeyError for an unknown type.
    """
    types = _built_in()["types"]
    return types[type] if type in types else _custom()[1][type]


def unknown_fields(object: Mapping[str, Any], *, types: bool = False) -> Iterator[tuple[str, str]]:
    """Yield path and message for each field that the object's kind does not have.

    Of an unknown kind, in its metadata.

    With `types`, also for each value that should be a list or an object and is not.
    """
    root = root_type(str(object.get("apiVersion")), str(object.get("kind")))
    if root is not None:
        yield from _unknown(object, root, "", types)
    else:
        yield from _unknown(object.get("metadata"), METADATA, "metadata", types)


def _unknown(value: Any, type: str, path: str, types: bool) -> Iterator[tuple[str, str]]:
    is_list = type.startswith("[")
    if not type or value is None:
        return
    if is_list and isinstance(value, list):
        inner = type[1:].partition(" ")[0]
        for index, item in enumerate(value):
            yield from _unknown(item, inner, f"{path}[{index}]", types)
    elif is_list or not isinstance(value, dict):
        if types:
            yield path, f"must be {'a list' if is_list else 'an object'}"
    elif type.startswith("{"):
        for key, item in value.items():
            yield from _unknown(item, type[1:], f"{path}[{key}]", types)
    else:
        known = fields_of(type)
        for field, item in value.items():
            below = f"{path}.{field}" if path else field
            if field in known:
                yield from _unknown(item, known[field], below, types)
            else:
                yield below, f"unknown field{did_you_mean(field, known)}"
