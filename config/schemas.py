"""The fields of each kind: of Kubernetes', of Gatewright's, and of custom kinds that are given.

`python -m tests.config.openapi` generates `openapi.json` from a real API server: its resources, the
types of their kinds, the defaults that it fills in, the fields that it requires, and the values of
fields that have only some. The value of a field among the types is the code of its type, see
`parse_type`. `make manifests` generates `own_types.json` in the same form from Gatewright's kinds:
computing it takes 5 MB and 0.4 s.
"""

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from config.faults import did_you_mean
from kube.resource import JsonObject

SchemaFields = Mapping[str, str]
FILE = Path(__file__).parent / "openapi.json"
OWN_FILE = Path(__file__).parent / "own_types.json"
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


class TypeRules(NamedTuple):
    """What the API server demands of an object of a type, besides the types of its fields."""

    required: Collection[str] = ()
    values: Mapping[str, Sequence[Any]] = {}
    """The values that fields may have, or their items, by field."""


class ObjectType(NamedTuple):
    """The fields of a type, what it demands, and whether it is Kubernetes' own."""

    fields: SchemaFields
    demands: TypeRules
    is_native: bool = False


@lru_cache(maxsize=4096)
def parse_type(code: str) -> FieldType:
    """Return the type of a code.

    `T` is a struct, `[T` a list, `[T key,key` a list whose items have these keys, `[T =` a set,
    `{T` a map, `:T` a scalar, and "" any value; `~T` is one too, with the fields of a struct. A `!`
    before the code means that it is atomic.
    """
    is_atomic, code = code.startswith("!"), code.removeprefix("!")
    if code.startswith("["):
        inner, _, keys = code[1:].rpartition(" ") if " " in code else (code[1:], "", "")
        return FieldType("list", inner, tuple(filter(None, keys.split(","))), not keys)
    shapes = {"{": "map", ":": "scalar", "": "any", "~": "any"}
    shape = shapes.get(code[:1], "struct")
    return FieldType(shape, code if shape == "struct" else code[1:], (), is_atomic)


@cache
def _built_in() -> dict[str, Any]:
    tables = orjson.loads(FILE.read_bytes())
    tables["kinds"].update(dict.fromkeys(SESSIONS, "Session"))
    tables["types"]["Session"] = SESSION
    return tables  # type: ignore[no-any-return]


@cache
def _own() -> dict[str, Any]:
    return orjson.loads(OWN_FILE.read_bytes())  # type: ignore[no-any-return]


def collect(schema: Mapping[str, Any], name: str, types: dict[str, SchemaFields]) -> str:
    """Add the type `name` of an OpenAPI schema, and nested types, to `types`.

    Return its name as a field's value.
    """
    is_open = schema.get("x-kubernetes-preserve-unknown-fields", False)
    if is_open and not schema.get("properties"):
        return ""
    atomic = "!" if schema.get("x-kubernetes-map-type") == "atomic" else ""
    if properties := schema.get("properties"):
        types[name] = {
            field: collect(property, f"{name}.{field}", types)
            for field, property in properties.items()
        }
        return f"~{name}" if is_open else f"{atomic}{name}"
    if isinstance(items := schema.get("items"), Mapping):
        keys = {"map": schema.get("x-kubernetes-list-map-keys", ()), "set": SET}
        named = ",".join(keys.get(schema.get("x-kubernetes-list-type", ""), ()))
        return f"[{collect(items, name, types)}{' ' if named else ''}{named}"
    if isinstance(values := schema.get("additionalProperties"), Mapping):
        return f"{atomic}{{{collect(values, name, types)}"
    return f":{schema['type']}" if schema.get("type") in SCALARS else ""


def collect_demands(schema: Mapping[str, Any], name: str, demands: dict[str, TypeRules]) -> None:
    """Add what an OpenAPI schema demands of the type `name`, and of nested types, by type."""
    properties = schema.get("properties", {})
    filled = {
        field
        for field, property in properties.items()
        if property.get("nullable") or "default" in property
    }
    values = {
        field: allowed
        for field, property in properties.items()
        if (allowed := property.get("enum") or (property.get("items") or {}).get("enum"))
    }
    required = tuple(each for each in schema.get("required", ()) if each not in filled)
    if required or values:
        demands[name] = TypeRules(required, values)
    for field, property in properties.items():
        collect_demands(property, f"{name}.{field}", demands)
    for subschema in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(subschema, Mapping):
            collect_demands(subschema, name, demands)


def root_type(api_version: str, kind: str) -> str | None:
    """Return the name of a kind's type; None if its fields are unknown."""
    name = f"{api_version}/{kind}"
    type: str | None = _built_in()["kinds"].get(name) or _own()["kinds"].get(name)
    return type


def fields_of(type: str) -> SchemaFields:
    """Return the fields of a type by name, with their types.

    Raises KeyError for an unknown type.
    """
    types = _built_in()["types"]
    return (types if type in types else _own()["types"])[type]  # type: ignore[no-any-return]


@cache
def _known_type(type: str) -> ObjectType:
    is_native = is_built_in(type)
    tables = _built_in() if is_native else _own()
    demands = TypeRules(tables["required"].get(type, ()), tables["enums"].get(type, {}))
    return ObjectType(tables["types"][type], demands, is_native)


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
    subresources: dict[str, Collection[str]] = dict.fromkeys(resources(), ())
    return {**subresources, **_built_in()["subresources"], **_own()["subresources"]}


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
        fields = fields_of(inner)
        for field, item in value.items():
            below = f"{path}.{field}" if path else field
            if field in fields:
                yield from _unknown(item, fields[field], below, types)
            else:
                yield below, f"unknown field{did_you_mean(field, fields)}"


OWN_FIELDS = {"apiVersion": ":string", "kind": ":string", "metadata": METADATA}


@dataclass(frozen=True, slots=True)
class CustomTypes:
    """The types of custom kinds, by `apiVersion/kind`, from CustomResourceDefinitions."""

    kinds: Mapping[str, str] = dataclasses.field(default_factory=dict)
    types: Mapping[str, SchemaFields] = dataclasses.field(default_factory=dict)
    demands: Mapping[str, TypeRules] = dataclasses.field(default_factory=dict)
    defaults: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, objects: Iterable[Any]) -> "CustomTypes":
        """Return the types of the CustomResourceDefinitions among the objects."""
        return cls._of(_defined_schemas(objects))

    @classmethod
    def of_openapi(cls, schemas: Iterable[Any]) -> "CustomTypes":
        """Return the types of the kinds among the OpenAPI schemas of an API server."""
        return cls._of(
            ("/".join(kind[key] for key in ("group", "version", "kind")), schema)
            for schema in schemas
            if len(kinds := schema.get("x-kubernetes-group-version-kind") or ()) == 1
            for kind in kinds
            if kind["group"]  # other than Status and the like
        )

    @classmethod
    def _of(cls, schemas: Iterable[tuple[str, Mapping[str, Any]]]) -> "CustomTypes":
        """Return the types of kinds by `apiVersion/kind`."""
        kinds: dict[str, str] = {}
        types: dict[str, SchemaFields] = {}
        demands: dict[str, TypeRules] = {}
        defaults: dict[str, Mapping[str, Any]] = {}
        for root, schema in schemas:
            if collect(schema, root, types) == root:
                types[root] = {**types[root], **OWN_FIELDS}
                kinds[root] = root
                collect_demands(schema, root, demands)
                defaults |= _defaults(schema, root)
        return cls(kinds, types, demands, defaults)

    def beside(self, other: "CustomTypes") -> "CustomTypes":
        """Return these types and those of `other`, which count where both have a kind."""
        return CustomTypes(
            {**self.kinds, **other.kinds},
            {**self.types, **other.types},
            {**self.demands, **other.demands},
            {**self.defaults, **other.defaults},
        )

    def fields_of(self, type: str) -> SchemaFields:
        """Return the fields of a type, custom or known, with their types."""
        return self.types[type] if type in self.types else fields_of(type)

    def defaults_of(self, type: str) -> Mapping[str, Any]:
        """Return the values that the API server fills in for a type, custom or built-in."""
        return self.defaults.get(type, {}) if type in self.types else defaults_of(type)

    def object_type(self, type: str) -> "ObjectType":
        """Return all about a type, custom or known. Raises KeyError for an unknown type."""
        if type in self.types:
            return ObjectType(self.types[type], self.demands.get(type, TypeRules()))
        return _known_type(type)


def _defaults(schema: Mapping[str, Any], name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield a type's name and the defaults of its fields, and those of the types below it."""
    properties = schema.get("properties", {})
    if defaults := {
        field: property["default"]
        for field, property in properties.items()
        if "default" in property
    }:
        yield name, defaults
    below = [(each, f"{name}.{field}") for field, each in properties.items()]
    below += [(schema.get(key), name) for key in ("items", "additionalProperties")]
    for subschema, path in below:
        if isinstance(subschema, Mapping):
            yield from _defaults(subschema, path)


def _defined_schemas(objects: Iterable[Any]) -> Iterator[tuple[str, JsonObject]]:
    """Yield `apiVersion/kind` and schema of each version of the CustomResourceDefinitions."""
    for object in objects:
        match object:
            case {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "spec": {
                    "group": str(group),
                    "names": {"kind": str(kind)},
                    "versions": list(versions),
                },
            }:
                for name, schema in _schemas(versions):
                    yield f"{group}/{name}/{kind}", schema


def _schemas(versions: Iterable[Any]) -> Iterator[tuple[str, JsonObject]]:
    """Yield name and schema of each version that has both."""
    for version in versions:
        match version:
            case {"name": str(name), "schema": {"openAPIV3Schema": dict(schema)}}:
                yield name, schema
