"""The fields of each kind, from the API server's OpenAPI and from the types of custom kinds.

`python -m tests.config.openapi` generates `openapi.json` from a real API server: its resources, the
types of their kinds, and the defaults that it fills in. The value of a field in that file is the
code of the field's type, see `parse_type`.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from config import crds
from config.faults import did_you_mean

SchemaFields = Mapping[str, str]
FILE = Path(__file__).parent / "openapi.json"
METADATA = "meta.v1.ObjectMeta"


# The OpenAPI document has these only as URL parameters.
SESSIONS = ("v1/PodAttachOptions", "v1/PodExecOptions")
SESSION = dict.fromkeys(
    ("apiVersion", "kind", "command", "container", "stderr", "stdin", "stdout", "tty"), ""
)
SCALARS = ("string", "integer", "number", "boolean")
SET = ("=",)  # the keys of a list whose items are their own keys


class FieldType(NamedTuple):
    """The type of a field: a struct, a list, a map, a scalar, or any value."""

    shape: str
    inner: str  # the name of a struct or a scalar, the code of items or values
    keys: tuple[str, ...] = ()  # that identify the items of a list
    is_atomic: bool = False  # replaced as a whole by server-side apply


@lru_cache(maxsize=4096)
def parse_type(code: str) -> FieldType:
    """Return the type of a code.

    `T` is a struct, `[T` a list, `[T key,key` a list whose items have these keys, `[T =` a set,
    `{T` a map, `:T` a scalar, and "" any value. A `!` before the code means that it is atomic.
    """
    is_atomic, code = code.startswith("!"), code.removeprefix("!")
    if code.startswith("["):
        inner, _, keys = code[1:].rpartition(" ") if " " in code else (code[1:], "", "")
        return FieldType("list", inner, tuple(filter(None, keys.split(","))), not keys)
    shapes = {"{": "map", ":": "scalar", "": "any"}
    shape = shapes.get(code[:1], "struct")
    return FieldType(shape, code if shape == "struct" else code[1:], (), is_atomic)


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
    atomic = "!" if schema.get("x-kubernetes-map-type") == "atomic" else ""
    if properties := schema.get("properties"):
        types[name] = {
            field: collect(each, f"{name}.{field}", types) for field, each in properties.items()
        }
        return f"{atomic}{name}"
    if isinstance(items := schema.get("items"), Mapping):
        keys = {"map": schema.get("x-kubernetes-list-map-keys", ()), "set": SET}
        named = ",".join(keys.get(schema.get("x-kubernetes-list-type", ""), ()))
        return f"[{collect(items, name, types)}{' ' if named else ''}{named}"
    if isinstance(values := schema.get("additionalProperties"), Mapping):
        return f"{atomic}{{{collect(values, name, types)}"
    return f":{schema['type']}" if schema.get("type") in SCALARS else ""


def root_type(api_version: str, kind: str) -> str | None:
    """Return the name of a kind's type; None if its fields are unknown."""
    name = f"{api_version}/{kind}"
    return _built_in()["kinds"].get(name) or _custom()[0].get(name)


def fields_of(type: str) -> SchemaFields:
    """Return the fields of a type by name, with their types.

    Raises KeyError for an unknown type.
    """
    types = _built_in()["types"]
    return types[type] if type in types else _custom()[1][type]


def defaults_of(type: str) -> Mapping[str, Any]:
    """Return the values that the API server fills in for an object of a built-in type."""
    return _built_in()["defaults"].get(type, {})  # type: ignore[no-any-return]


@cache
def omitted_of(type: str) -> frozenset[str]:
    """Return the fields of a built-in type that the API server leaves out where they are zero."""
    return frozenset(_built_in()["omitted"].get(type, ()))


def is_built_in(type: str) -> bool:
    """Return whether a type is Kubernetes' own."""
    return type in _built_in()["types"]


def resources() -> Mapping[str, tuple[str, bool]]:
    """Return plural and scope of each built-in kind, by `apiVersion/kind`."""
    return _built_in()["resources"]  # type: ignore[no-any-return]


@cache
def _subresources() -> Mapping[str, Collection[str]]:
    found: dict[str, Collection[str]] = dict.fromkeys(resources(), ())
    found |= _built_in()["subresources"]
    for definition in (kind.definition for kind in crds.kinds()):
        scale = ("scale",) if definition.scale else ()
        found[f"{definition.api_version}/{definition.kind}"] = ("status", *scale)
    return found


def subresources(api_version: str, kind: str) -> Collection[str] | None:
    """Return the subresources of a kind that can be written or connected to.

    None for an unknown kind.
    """
    return _subresources().get(f"{api_version}/{kind}")


def unknown_fields(object: Mapping[str, Any], *, types: bool = False) -> Iterator[tuple[str, str]]:
    """Yield path and message for each field that the object's kind does not have.

    For an unknown kind, only its metadata is checked.

    With `types`, also for each value that should be a list or an object and is not.
    """
    root = root_type(str(object.get("apiVersion")), str(object.get("kind")))
    if root is not None:
        yield from _unknown(object, root, "", types)
    else:
        yield from _unknown(object.get("metadata"), METADATA, "metadata", types)


def _unknown(value: Any, code: str, path: str, types: bool) -> Iterator[tuple[str, str]]:
    shape, inner, _, _ = parse_type(code)
    if value is None or shape in ("any", "scalar"):
        return
    if shape == "list" and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(item, inner, f"{path}[{index}]", types)
    elif shape == "list" or not isinstance(value, dict):
        if types:
            yield path, f"must be {'a list' if shape == 'list' else 'an object'}"
    elif shape == "map":
        for key, item in value.items():
            yield from _unknown(item, inner, f"{path}[{key}]", types)
    else:
        known = fields_of(inner)
        for field, item in value.items():
            below = f"{path}.{field}" if path else field
            if field in known:
                yield from _unknown(item, known[field], below, types)
            else:
                yield below, f"unknown field{did_you_mean(field, known)}"
