"""Random mutations: apply configurations by the types of fields, and JSON Patches of objects."""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from config.schemas import METADATA, CustomTypes, parse_type, root_type
from kube.resource import JsonObject
from tests.webhook.policy_sets.on_a_cluster.mutating import SPECS, mutation

TEXTS = ("a", "app", "b", "log", "new", "tmp", "web", "TCP", "1Gi", "/a", "example.com/z")
NUMBERS = ("1", "2", "53", "80", "8080", "2.0", "2.5", "-1")
PATCH_VALUES = (*NUMBERS, "'a'", "'2'", "true", "null", "[]", "['a', 'b']", "{'a': 'b'}", "{}")
MAX_DEPTH = 5
LOOKS_AT_OBJECT = 0.75  # how often a field that the object has is taken, not any


def random_mutations(count: int, seed: int, types: CustomTypes) -> Iterator[tuple[str, JsonObject]]:
    """Yield this many kinds, each with a mutation of its object in `SPECS`."""
    random = Random(seed)
    kinds = [(version, kind, fields) for (version, kind), fields in SPECS.items()]
    for _ in range(count):
        path, kind, fields = random.choice(kinds)
        api_version = path.rpartition("/")[0]
        metadata = {"labels": {"app": "web"}, "finalizers": ["example.com/z", "example.com/a"]}
        object = {"metadata": metadata, **fields}
        if random.random() < 0.4:
            yield kind, mutation(_patch(random, object))
        else:
            code = root_type(api_version, kind) or types.kinds.get(f"{api_version}/{kind}", "")
            yield kind, mutation(_Configuration(random, types).fields(object, code))


def _patch(random: Random, object: JsonObject) -> str:
    """Return the expression of a JSON Patch with one to three operations."""
    operations = [_operation(random, object) for _ in range(random.randint(1, 3))]
    return f"[{', '.join(operations)}]"


def _operation(random: Random, object: JsonObject) -> str:
    op = random.choice(("add", "add", "replace", "remove", "test", "copy", "move"))
    fields = [f"op: '{op}'", f"path: {json.dumps(_pointer(random, object))}"]
    if op in ("copy", "move"):
        # Fields that the API server sets would be copied too.
        within = {key: value for key, value in object.items() if key != "metadata"}
        fields.append(f"from: {json.dumps(_pointer(random, within))}")
    elif op != "remove" and random.random() < 0.95:
        fields.append(f"value: {random.choice(PATCH_VALUES)}")
    return f"JSONPatch{{{', '.join(fields)}}}"


def _pointer(random: Random, value: Any) -> str:
    """Return a pointer to a value of the object, to one beside it, or to none."""
    pointer = ""
    while True:
        keys = list(value) if isinstance(value, dict) else []
        if isinstance(value, list):
            keys = [str(index) for index in range(len(value))]
        is_new = random.random() < 0.15
        if is_new or not keys:
            steps = ("-", "-1", "0", "9", "01") if isinstance(value, list) else ("new", "a~1b", "")
            return f"{pointer}/{random.choice(steps)}" if is_new or not pointer else pointer
        key = random.choice(keys)
        pointer, value = f"{pointer}/{key}", value[int(key) if isinstance(value, list) else key]
        if random.random() < 0.3:
            return pointer


class _Configuration:
    """Writes random apply configurations in CEL."""

    def __init__(self, random: Random, types: CustomTypes) -> None:
        self._random, self._types = random, types

    def fields(self, object: JsonObject, code: str) -> str:
        """Return the fields of an apply configuration of an object."""
        known = self._types.fields_of(code) if code else {"metadata": METADATA, "spec": ""}
        names = [each for each in known if each not in ("apiVersion", "kind", "status")]
        chosen = self._random.sample(names, min(len(names), self._random.choice((1, 1, 2))))
        return self._named(chosen, object, dict(known), "Object", 0)

    def _named(
        self, names: list[str], value: Any, known: dict[str, str], path: str, depth: int
    ) -> str:
        of = value if isinstance(value, dict) else {}
        return ", ".join(
            f"{name}: {self._value(of.get(name), known[name], f'{path}.{name}', depth + 1)}"
            for name in names
        )

    def _value(self, value: Any, code: str, path: str, depth: int) -> str:
        """Return an expression of a type, near to the value that the object has."""
        random, (shape, inner, *_) = self._random, parse_type(code)
        if random.random() < 0.03:
            return random.choice(("1", "'x'", "true", "['x']", "{'x': 'y'}"))
        if shape == "list":
            items = value if isinstance(value, list) else []
            near = [
                random.choice(items) if items else None for _ in range(random.choice((1, 1, 2, 0)))
            ]
            return f"[{', '.join(self._value(each, inner, path, depth) for each in near)}]"
        if shape == "map":
            names = random.sample(["a", "b", "app", "cpu"], random.choice((1, 1, 2)))
            if parse_type(inner).shape != "scalar":
                # The API server cannot convert lists and objects in a map.
                of = dict.fromkeys(names, inner)
                return f"{path}{{{self._named(names, value, of, path, depth)}}}"
            parts = (f"'{name}': {self._value(None, inner, path, depth)}" for name in names)
            return f"{{{', '.join(parts)}}}"
        if shape == "struct":
            return self._struct(value, inner, path, depth)
        return self._scalar(value, inner)

    def _struct(self, value: Any, type: str, path: str, depth: int) -> str:
        known = dict(self._types.fields_of(type))
        there = [each for each in known if isinstance(value, dict) and each in value]
        is_near = there and self._random.random() < LOOKS_AT_OBJECT
        pool = there if is_near else list(known)
        few = [] if depth >= MAX_DEPTH and not there else pool
        names = self._random.sample(few, min(len(few), self._random.choice((1, 1, 2, 3))))
        if "name" in known and self._random.random() < 0.9:
            names = list(dict.fromkeys(("name", *names)))
        return f"{path}{{{self._named(names, value, known, path, depth)}}}"

    def _scalar(self, value: Any, type: str) -> str:
        random = self._random
        if value is not None and not isinstance(value, dict | list) and random.random() < 0.5:
            return json.dumps(value)
        if type in ("integer", "number"):
            return random.choice(NUMBERS)
        if type == "boolean":
            return random.choice(("true", "false"))
        return json.dumps(random.choice(TEXTS))
