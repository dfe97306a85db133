"""The types of custom kinds, from CustomResourceDefinitions beside the objects. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from config import schemas
from config.schemas import METADATA, SchemaFields, TypeRules
from kube.resource import JsonObject

OWN_FIELDS = {"apiVersion": ":string", "kind": ":string", "metadata": METADATA}


@dataclass(frozen=True, slots=True)
class CustomTypes:
    """The types of custom kinds, by `apiVersion/kind`, from CustomResourceDefinitions."""

    kinds: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, SchemaFields] = field(default_factory=dict)
    demands: Mapping[str, TypeRules] = field(default_factory=dict)

    @classmethod
    def of(cls, objects: Iterable[Any]) -> "CustomTypes":
        """Return the types of the CustomResourceDefinitions among the objects."""
        kinds: dict[str, str] = {}
        types: dict[str, SchemaFields] = {}
        demands: dict[str, TypeRules] = {}
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
                        root = f"{group}/{name}/{kind}"
                        if schemas.collect(schema, root, types) == root:
                            types[root] = {**types[root], **OWN_FIELDS}
                            kinds[root] = root
                            schemas.collect_demands(schema, root, demands)
        return cls(kinds, types, demands)

    def fields_of(self, type: str) -> SchemaFields:
        """Return the fields of a type, custom or known, with their types."""
        return self.types[type] if type in self.types else schemas.fields_of(type)

    def demands_of(self, type: str) -> TypeRules:
        """Return what a type demands, custom or known."""
        if type in self.types:
            return self.demands.get(type, TypeRules())
        return schemas.demands_of(type)


def _schemas(versions: Iterable[Any]) -> Iterator[tuple[str, JsonObject]]:
    """Yield name and schema of each version that has both."""
    for version in versions:
        match version:
            case {"name": str(name), "schema": {"openAPIV3Schema": dict(schema)}}:
                yield name, schema
