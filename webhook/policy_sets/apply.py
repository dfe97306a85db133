"""Server-side apply's merge of an apply configuration into an object, by the types of its fields.

Source: structured-merge-diff (typed/merge.go, typed/validate.go) and the patcher of
MutatingAdmissionPolicy, which rejects a configuration with an atomic list, map or struct.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from config.schemas import METADATA, SET, CustomTypes, FieldType, parse_type
from kube.resource import JsonObject
from webhook.engine.policy import RuleError

SCALARS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int, float),
    "number": (int, float),
    "scalar": (str, bool, int, float),
    "quantity": (str, bool, int, float),
}
# What a null becomes in a list or a map of scalars, as Go decodes it.
ZEROS: dict[str, Any] = {
    "string": "", "boolean": False, "integer": 0, "number": 0, "scalar": 0, "quantity": "0",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TypedMerge:
    """Checks and merges values by the codes of their types; `types` are those of custom kinds."""

    types: CustomTypes = field(default_factory=CustomTypes)

    def apply(
        self, object: JsonObject, configuration: JsonObject, code: str, path: str = ""
    ) -> JsonObject:
        """Return the object with a configuration merged into it; neither is changed.

        `code` is that of the object's type; "" for a kind of which only the metadata is known: its
        maps are merged and its lists replaced. Raises RuleError if the API server would reject the
        configuration.
        """
        if not code and isinstance(metadata := configuration.get("metadata"), dict):
            rest = {key: value for key, value in configuration.items() if key != "metadata"}
            own = self.apply(object.get("metadata", {}), metadata, METADATA, "metadata")
            return self.apply(object, rest, code) | {"metadata": own}
        for below, text in self._faults(configuration, code, path):
            raise RuleError(f"the ApplyConfiguration is invalid: {below}: {text}")
        if atomic := [*self._atomic(configuration, code, path)]:
            raise RuleError(
                "the ApplyConfiguration may not change atomic lists, maps or structs: "
                f"{', '.join(atomic)}; use a JSONPatch"
            )
        merged: JsonObject = self._merge(object, configuration, code)
        return merged

    def type_faults(self, value: Any, code: str, path: str = "") -> Iterator[tuple[str, str]]:
        """Yield the paths of fields that a type does not have, and of values of another type."""
        shape, inner, _, _ = parse_type(code)
        if value is None or shape == "any":
            return
        if shape == "scalar":
            is_right = type(value) in SCALARS[inner]
            if not is_right or (inner == "integer" and not float(value).is_integer()):
                yield path, f"must be {'an' if inner == 'integer' else 'a'} {inner}"
        elif shape == "list" and isinstance(value, list):
            for index, item in enumerate(value):
                yield from self.type_faults(item, inner, f"{path}[{index}]")
        elif shape == "list" or not isinstance(value, dict):
            yield path, f"must be {'a list' if shape == 'list' else 'an object'}"
        else:
            fields = self.types.fields_of(inner) if shape == "struct" else {}
            for key, item in value.items():
                below = f"{path}.{key}".lstrip(".")
                if shape == "map":
                    yield from self.type_faults(item, inner, below)
                elif key in fields:
                    yield from self.type_faults(item, fields[key], below)
                else:
                    yield below, "unknown field"

    def without_nulls(self, value: Any, code: str) -> Any:
        """Return a value as Go decodes it: a field that is null is unset, an item is zero."""
        shape, inner, _, _ = parse_type(code)
        if shape == "list" and isinstance(value, list):
            return [self._decode(item, inner) for item in value]
        if shape == "map" and isinstance(value, dict):
            return {key: self._decode(item, inner) for key, item in value.items()}
        if shape == "struct" and isinstance(value, dict):
            fields = self.types.fields_of(inner)
            return {
                key: self.without_nulls(item, fields.get(key, ""))
                for key, item in value.items()
                if item is not None
            }
        return value

    def _decode(self, item: Any, code: str) -> Any:
        shape, inner, _, _ = parse_type(code)
        if item is None:
            return ZEROS[inner] if shape == "scalar" else {} if shape == "struct" else None
        return self.without_nulls(item, code)

    def _faults(self, value: Any, code: str, path: str) -> Iterator[tuple[str, str]]:
        """Yield the errors of a configuration: wrong types, and missing or duplicate item keys."""
        yield from self.type_faults(value, code, path)
        for below, item, type in self._below(value, code, path):
            if type.shape == "list" and type.keys and isinstance(item, list):
                if any(not isinstance(each, dict) for each in item) and type.keys != SET:
                    yield below, "its items must be objects"
                    return
                keys = [self._key(each, type) for each in item]
                if () in keys:
                    yield below, f"an item has no {' and no '.join(type.keys)}"
                if repeated := [key for key, count in Counter(keys).items() if count > 1 and key]:
                    key = ", ".join(f"{name}={json.loads(text)}" for name, text in repeated[0])
                    yield below, f"two items have the same key {key}"

    def _atomic(self, value: Any, code: str, path: str) -> Iterator[str]:
        """Yield the paths of lists, maps and structs that are replaced as a whole.

        Like the API server, look into the fields of structs and the items of lists only.
        """
        for below, item, type in self._below(value, code, path, into_maps=False):
            is_list = isinstance(item, list) and type.shape == "list" and not type.keys
            is_object = (
                isinstance(item, dict) and type.shape in ("struct", "map") and type.is_atomic
            )
            if is_list or is_object:
                yield below

    def _below(
        self, value: Any, code: str, path: str, *, into_maps: bool = True
    ) -> Iterator[tuple[str, Any, FieldType]]:
        """Yield a value and all below it, with path and type."""
        parsed = parse_type(code)
        yield path, value, parsed
        if isinstance(value, list) and parsed.shape == "list":
            for index, item in enumerate(value):
                yield from self._below(item, parsed.inner, f"{path}[{index}]", into_maps=into_maps)
        elif isinstance(value, dict) and (into_maps or parsed.shape != "map"):
            for key, item in value.items():
                at_key = f"{path}.{key}".lstrip(".")
                yield from self._below(item, self._field(parsed, key), at_key, into_maps=into_maps)

    def _field(self, type: FieldType, key: str) -> str:
        """Return the code of a field's type."""
        if type.shape == "struct" or (type.shape == "any" and type.inner):
            return self.types.fields_of(type.inner).get(key, "")
        return type.inner if type.shape == "map" else ""

    def _merge(self, old: Any, new: Any, code: str) -> Any:
        type = parse_type(code)
        if isinstance(new, dict):
            fields = old if isinstance(old, dict) else {}
            merged = {
                key: self._merge(fields.get(key), new[key], self._field(type, key)) for key in new
            }
            # The API server converts an empty list to null, which is no field.
            return {
                key: value
                for key, value in {**fields, **merged}.items()
                if not (value == [] == new.get(key))
            }
        if isinstance(new, list) and type.keys:
            return self._merged_items(old if isinstance(old, list) else [], new, type)
        return new

    def _merged_items(self, old: Sequence[Any], new: Sequence[Any], type: FieldType) -> list[Any]:
        """Return the items of two lists, merged by key, in an order that keeps that of both.

        If several old items have the same key, a new item with this key replaces them all.
        """
        old_keys, new_keys = ([self._key(each, type) for each in items] for items in (old, new))
        count, by_key = Counter(old_keys), dict(zip(old_keys, old, strict=True))
        shared = [key for key in new_keys if key in by_key]
        merged, done = [], set()
        left = right = 0
        while left < len(old) or right < len(new):
            if left < len(old):
                key = old_keys[left]
                is_new = key in new_keys
                if not is_new:
                    merged.append(old[left])
                    left += 1
                    continue
                is_next = right < len(new) and key == new_keys[right]
                if not is_next and (key in done or (shared and shared[0] != key)):
                    left += 1
                    continue
                left += is_next
            key, item = new_keys[right], new[right]
            before = by_key.get(key) if count[key] == 1 else None
            merged.append(self._merge(before, item, type.inner))
            done.add(key)
            right += 1
            if shared and shared[0] == key:
                shared.pop(0)
        return merged

    def _key(self, item: Any, type: FieldType) -> tuple[tuple[str, str], ...]:
        """Return the identity of an item: its value in a set, else its keys or their defaults."""
        if type.keys == SET:
            return (("", json.dumps(item)),)
        defaults = self.types.defaults_of(type.inner.lstrip("!"))
        values = {key: item.get(key, defaults.get(key)) for key in type.keys}
        return tuple((key, json.dumps(value)) for key, value in values.items() if value is not None)
