"""Finds what the API server rejects in an object by the types of its fields. Pure.

It cannot decode unknown fields and wrong types; it rejects missing fields and unknown values. The
fields are those of `schemas`, and of CustomResourceDefinitions beside the object.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from config import schemas
from config.faults import did_you_mean
from config.quantities import parse_exact
from config.schemas import METADATA, CustomTypes, ObjectType, parse_type
from config.yaml_scalars import LARGEST_INTEGER
from kube.resource import JsonObject

NOUNS = {
    "string": "a string",
    "scalar": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "quantity": "a quantity such as 500m or 1Gi",
    "int32": "an integer of 32 bits",
    "int-or-string": "an integer or a string",
}
# What OpenAPI says by formats, which `openapi.json` does not keep: fields of 64 bits (or of both
# sizes, by type), and those that take a number or a text.
LONG = frozenset(
    (
        *("activeDeadlineSeconds", "capacity", "count", "deletionGracePeriodSeconds"),
        *("expirationSeconds", "fsGroup", "generation", "gid", "gracePeriodSeconds", "int"),
        *("maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties"),
        *("nodeAllocatableUpdatePeriodSeconds", "observedGeneration", "resourceSliceCount"),
        *("revision", "runAsGroup", "runAsUser", "seconds", "sizeBytes"),
        *("startingDeadlineSeconds", "terminationGracePeriodSeconds", "tolerationSeconds", "uid"),
    )
)
INT_OR_STRING = frozenset(("maxSurge", "maxUnavailable", "minAvailable", "port", "targetPort"))
MISSING = "missing; the API server requires this field"
UNKNOWN = "the API server rejects or drops this field"


@dataclass(frozen=True, slots=True)
class ObjectFault:
    """A field that the API server rejects: its path and value, the rule, and the fix."""

    path: str
    found: Any
    rule: str
    fix: str
    is_decodable: bool = False
    """Whether the API server decodes the object, and rejects it then."""


def object_faults(object: JsonObject, custom: CustomTypes) -> Iterator[ObjectFault]:
    """Yield each field that the object's kind does not have, or lacks, and each wrong value.

    Of an unknown kind, only the metadata is checked. Null counts as absent.
    """
    name = f"{object.get('apiVersion')}/{object.get('kind')}"
    root = custom.kinds.get(name) or schemas.root_type(
        str(object.get("apiVersion")), str(object.get("kind"))
    )
    if root is None:
        yield from _Walk(custom).faults(object.get("metadata"), METADATA, "metadata")
    else:
        yield from _Walk(custom).faults(object, root, "")


@dataclass(frozen=True, slots=True)
class _Walk:
    custom: CustomTypes

    def faults(self, value: Any, code: str, path: str) -> Iterator[ObjectFault]:
        shape, inner, _, _ = parse_type(code)
        if value is None or shape == "any":
            return
        if shape == "scalar":
            yield from _of_scalar(value, inner, path)
        elif shape == "list":
            if not isinstance(value, list):
                yield ObjectFault(path, value, "must be a list", "Write it as a list")
                return
            names = Counter(map(_name, value))
            for index, item in enumerate(value):
                name = _name(item)
                label = f"name={name}" if name and names[name] == 1 else index
                yield from self.faults(item, inner, f"{path}[{label}]")
        elif not isinstance(value, dict):
            yield ObjectFault(path, value, "must be an object", "Write it as an object")
        elif shape == "map":
            for key, item in value.items():
                yield from self.faults(item, inner, f"{path}[{key}]")
        else:
            yield from self._of_fields(value, inner, path)

    def _of_fields(self, value: JsonObject, type: str, path: str) -> Iterator[ObjectFault]:
        object_type = self.custom.object_type(type)
        fields, _, is_native = object_type
        for name, item in value.items():
            below = f"{path}.{name}" if path else name
            if name in fields:
                code = _with_size(name, fields[name]) if is_native else fields[name]
                yield from self.faults(item, code, below)
            else:
                fix = _suggestion(name, fields, "Remove it")
                yield ObjectFault(below, item, f"unknown field; {UNKNOWN}", fix)
        yield from self._demands(value, object_type, path)
        spec = fields.get("spec", "")
        if is_native and not path and not value.get("spec") and parse_type(spec).shape == "struct":
            # In Go it is there, and empty.
            yield from self._demands({}, self.custom.object_type(spec), "spec")

    def _demands(
        self, value: JsonObject, object_type: ObjectType, path: str
    ) -> Iterator[ObjectFault]:
        """Yield a fault for each missing field and each value that is not among a field's values.

        An empty text of a built-in type counts as absent, as in Go.
        """
        _, demands, is_native = object_type
        for name in demands.required:
            below = f"{path}.{name}" if path else name
            item = value.get(name)
            if item is None or (is_native and item in ("", [])):
                yield ObjectFault(below, item, MISSING, "Add it", is_decodable=True)
        for name, values in demands.values.items():
            written, below = value.get(name), f"{path}.{name}" if path else name
            for item in written if isinstance(written, list) else (written,):
                if item is None or (is_native and item == "") or item in values:
                    continue
                if isinstance(item, str | int | float):  # another type is a fault of its own
                    rule = f"must be one of {', '.join(map(str, values))}"
                    fix = _suggestion(str(item), map(str, values), "Correct it")
                    yield ObjectFault(below, item, rule, fix, is_decodable=True)


def _suggestion(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return a question for the known word that is close to this one; `otherwise` without one."""
    suggestion = did_you_mean(word, known)
    is_close = suggestion.startswith("; did you mean")
    return f"D{suggestion.removeprefix('; d')}" if is_close else otherwise


def _with_size(name: str, code: str) -> str:
    """Return the code of a field of a built-in type, with the size of its integer."""
    if code == "" and name in INT_OR_STRING:
        return ":int-or-string"
    return ":int32" if code == ":integer" and name not in LONG else code


def _name(item: Any) -> str | None:
    """Return the name by which a path names an item, if only this item has it."""
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) and "]" not in name else None


def _of_scalar(value: Any, type: str, path: str) -> Iterator[ObjectFault]:
    if not _fits(value, type):
        noun = NOUNS["integer" if type == "int32" and not isinstance(value, int) else type]
        yield ObjectFault(path, value, f"must be {noun}", _fix(value, type))


def _fits(value: Any, type: str) -> bool:
    match type:
        case "string" | "scalar":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return _is_integer(value, LARGEST_INTEGER)
        case "int32":
            return _is_integer(value, 2**31 - 1)
        case "int-or-string":
            return isinstance(value, str) or _is_integer(value, 2**31 - 1)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "quantity":
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                return False
            return parse_exact(str(value)) is not None
    return True


def _is_integer(value: Any, largest: int) -> bool:
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return is_integer and -largest - 1 <= value <= largest


def _fix(value: Any, type: str) -> str:
    if type in ("string", "scalar") and isinstance(value, bool | int | float):
        return "Write it in quotes"
    if type in ("integer", "int32", "boolean", "number") and isinstance(value, str):
        is_quoted = value in ("true", "false") if type == "boolean" else value.isdigit()
        if is_quoted:
            return "Write it without quotes"
    return "Correct it"
