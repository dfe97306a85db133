"""CustomResourceDefinitions, generated from the API types.

The API server requires structural schemas. Pydantic's JSON Schema is not structural: it has $ref,
anyOf with null and exclusive bounds as numbers. `structural` converts it. All functions here are
pure.
"""

import importlib
import json
import pkgutil
from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from config import api
from config.api.definition import Column, Definition
from config.api.meta import CustomResource
from kube.resource import JsonObject

HEADER = "# Generated from the type of its objects by `gatewright crds`; do not edit.\n"
NOISE = ("title", "additionalProperties", "$defs", "discriminator")


def kinds() -> list[type[CustomResource]]:
    """Return every kind of config.api in each version, sorted by its definition's name."""
    for module in pkgutil.iter_modules(api.__path__, f"{api.__name__}."):
        importlib.import_module(module.name)
    declared = [
        kind
        for kind in CustomResource.__subclasses__()
        if kind.__module__.startswith(f"{api.__name__}.")
    ]
    return sorted(declared, key=lambda kind: (kind.definition.name, kind.definition.version))


def structural(schema: JsonObject, definitions: JsonObject | None = None) -> JsonObject:
    """Convert a JSON Schema of pydantic to a structural schema that accepts the same values."""
    definitions = schema.get("$defs", {}) if definitions is None else definitions
    if "$ref" in schema:
        referred = definitions[schema["$ref"].removeprefix("#/$defs/")]
        return structural(
            {**referred, **{key: value for key, value in schema.items() if key != "$ref"}},
            definitions,
        )
    if schema.get("x-kubernetes-int-or-string"):  # which implies the union, with a shorter error
        return {
            key: value
            for key, value in schema.items()
            if key not in {*NOISE, "anyOf"} and (key, value) != ("default", None)
        }
    if "anyOf" in schema:
        options = [option for option in schema["anyOf"] if option != {"type": "null"}]
        if len(options) > 1:
            raise TypeError(f"a structural schema has no unions: {options}")
        return structural(
            {**options[0], **{key: value for key, value in schema.items() if key != "anyOf"}},
            definitions,
        )
    return dict(sorted(_keywords(schema, definitions)))


def _keywords(schema: JsonObject, definitions: JsonObject) -> Iterator[tuple[str, Any]]:
    """Yield the keywords of one level in their structural form."""
    for keyword, value in schema.items():
        match keyword, value:
            case "properties", dict():
                yield keyword, {name: structural(each, definitions) for name, each in value.items()}
            case "items", dict():
                yield keyword, structural(value, definitions)
            case "additionalProperties", dict():
                yield keyword, structural(value, definitions)
            case "const", _:
                yield "enum", [value]
            case "exclusiveMinimum", _:
                yield from (("minimum", value), ("exclusiveMinimum", True))
            case "exclusiveMaximum", _:
                yield from (("maximum", value), ("exclusiveMaximum", True))
            case "default", _:
                yield from () if value is None else ((keyword, _without_nulls(value)),)
            case _ if keyword not in NOISE:
                yield keyword, value


def _without_nulls(value: Any) -> Any:
    """Remove nulls, which mean absent."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


def of_several_versions() -> list[str]:
    """Return the names of the CustomResourceDefinitions with several versions."""
    return sorted({kind.definition.name for kind in kinds() if not kind.definition.storage})


def definition(*versions: type[CustomResource]) -> dict[str, Any]:
    """Return the CustomResourceDefinition of one kind; each type is a version.

    It does not set `conversion`, so that applying it again does not revert the controller's
    setting, made once a webhook answers.
    """
    about = next(
        kind.definition for kind in versions if kind.definition.storage or len(versions) == 1
    )
    names = {
        "categories": list(about.categories),
        "kind": about.kind,
        "listKind": f"{about.kind}List",
        "plural": about.plural,
        "shortNames": list(about.short_names),
        "singular": about.kind.lower(),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": about.name},
        "spec": {
            "group": about.group,
            "names": {key: value for key, value in names.items() if value},
            "scope": "Namespaced" if about.namespaced else "Cluster",
            "versions": [_version(kind, kind.definition) for kind in versions],
        },
    }


def _version(kind: type[CustomResource], about: Definition) -> dict[str, Any]:
    """Return one version: its columns, schema and subresources."""
    subresources: dict[str, Any] = {"status": {}}
    if about.scale:
        subresources["scale"] = {
            "specReplicasPath": about.scale.replicas,
            "statusReplicasPath": about.scale.ready,
            "labelSelectorPath": about.scale.selector,
        }
    whole = without_item_defaults(explain_defaults(schema(kind)))
    if "status" in whole["properties"]:
        # Until the controller has read a new object, tools that wait (kstatus: helm, Flux) see that
        # its status is not current.
        whole["properties"]["status"] |= {"default": {"observedGeneration": -1}}
    version = {
        "name": about.version,
        "served": True,
        "storage": about.storage,
        "additionalPrinterColumns": [_column(column) for column in about.columns],
        "schema": {"openAPIV3Schema": whole},
        "selectableFields": [{"jsonPath": path} for path in about.selectable_fields],
        "subresources": subresources,
    }
    return {key: value for key, value in version.items() if value not in ([], {})}


def schema(kind: type[CustomResource]) -> JsonObject:
    """Return the schema (OpenAPI v3) of a whole object.

    The API server validates the metadata itself.
    """
    schema = structural(kind.model_json_schema(by_alias=True))
    schema["properties"] = {
        "apiVersion": {
            "description": "Group and version of this object's schema.",
            "type": "string",
        },
        "kind": {"description": "Kind of this object.", "type": "string"},
        **schema["properties"],
        "metadata": {"type": "object"},
    }
    return schema


def explain_defaults(schema: JsonObject) -> JsonObject:
    """Repeat each default in the description: `kubectl explain` shows no defaults otherwise."""
    within: JsonObject = {
        key: explain_defaults(schema[key])
        for key in ("items", "additionalProperties")
        if isinstance(schema.get(key), dict)
    }
    if properties := schema.get("properties"):
        within["properties"] = {name: explain_defaults(each) for name, each in properties.items()}
    default, text = schema.get("default"), schema.get("description", "")
    if isinstance(default, str | int) and default != "" and "default" not in text.lower():
        value = json.dumps(default)
        within["description"] = (
            f"{text} Defaults to {value}." if text.endswith(".") else f"{text}; {value} by default"
        )
    return {**schema, **within}


def without_item_defaults(schema: JsonObject, *, is_item: bool = False) -> JsonObject:
    """Leave the defaults of list items to the types: the API server stores none in an item.

    Argo CD's structured merge diff replaces a list without keys as a whole, so a stored default in
    an item would be a difference for ever. Keys of items keep theirs: the API server requires a
    default for a key that is not required.
    """
    kept = dict(schema)
    if is_item:
        kept.pop("default", None)
    for below in ("items", "additionalProperties"):
        if isinstance(kept.get(below), dict):
            kept[below] = without_item_defaults(kept[below], is_item=is_item or below == "items")
    if "properties" in kept:
        kept["properties"] = {
            name: without_item_defaults(field, is_item=is_item)
            for name, field in kept["properties"].items()
        }
    for key in kept.get("x-kubernetes-list-map-keys", ()):
        kept["items"]["properties"][key] = schema["items"]["properties"][key]
    return kept


def _column(column: Column) -> dict[str, Any]:
    """Return one column of `kubectl get`."""
    written = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.description:
        written["description"] = column.description
    return {**written, "priority": 1} if column.wide else written


def render(types: Iterable[type[CustomResource]] | None = None) -> dict[str, str]:
    """Return the definitions of `types` (default: all of Gatewright's) as YAML, by file name."""
    resources: dict[tuple[str, str], list[type[CustomResource]]] = {}
    for kind in kinds() if types is None else types:
        resources.setdefault((kind.definition.group, kind.definition.plural), []).append(kind)
    return {
        f"{group}_{plural}.yaml": HEADER
        + yaml.safe_dump(definition(*versions), sort_keys=False, width=120)
        for (group, plural), versions in resources.items()
    }
