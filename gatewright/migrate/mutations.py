"""Changes at paths of an object, written as a JSONPatch in CEL that creates parents."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from gatewright.migrate.celtext import every, literal, negated, present, select
from gatewright.migrate.patterns import ANCHOR
from gatewright.migrate.results import refuse

TEMPLATE = (
    "object.kind == 'Pod' ? '' : object.kind == 'CronJob' ? '/spec/jobTemplate/spec/template' : "
    "'/spec/template'"
)
UNKNOWN = ("it changes more than fields at fixed paths",
           "a mutation in CEL, `security-defaults` or `resource-defaults`")  # fmt: skip


class PathChange(NamedTuple):
    """A value at a path: `add`, `remove`, or `default` where it is missing."""

    path: tuple[str, ...]
    value: Any = None
    operation: str = "add"


def mutation_to_cel(changes: Iterable[PathChange], of_pods: bool) -> dict[str, Any]:
    """Return a rule with the mutation; `of_pods`: paths begin at the pod or the pod template."""
    root, before = ("variables.pod", "variables.template + ") if of_pods else ("object", "")
    terms, ensured = list[str](), set[tuple[str, ...]]()
    for path, value, operation in changes:
        there = every(present(_at(root, path[:at]), path[at]) for at in range(len(path)))
        text = f"{before}{literal(_pointer(path))}"
        for end in range(1, len(path)) if operation != "remove" else ():
            parent = path[:end]
            if parent not in ensured:
                parent_there = every(present(_at(root, parent[:at]), parent[at])
                                     for at in range(end))  # fmt: skip
                create = _patch(f"{before}{literal(_pointer(parent))}", {})
                terms.append(f"({negated(parent_there)} ? {create} : [])")
                ensured.add(parent)
        terms.append({
            "add": _patch(text, value),
            "default": f"({negated(there)} ? {_patch(text, value)} : [])",
            "remove": f"({there} ? [JSONPatch{{op: 'remove', path: {text}}}] : [])",
        }[operation])  # fmt: skip
    patch = {"patchType": "JSONPatch", "jsonPatch": {"expression": " + ".join(terms)}}
    written: dict[str, Any] = {"mutations": [patch]}
    if of_pods:
        written["variables"] = [{"name": "template", "expression": TEMPLATE}]
    return written


def _at(root: str, path: Sequence[str]) -> str:
    for key in path:
        root = select(root, key)
    return root


def _pointer(path: Sequence[str]) -> str:
    return "".join(f"/{key.replace('~', '~0').replace('/', '~1')}" for key in path)


def _patch(path: str, value: Any) -> str:
    return f"[JSONPatch{{op: 'add', path: {path}, value: {literal(value)}}}]"


def changes_of(mutate: Mapping[str, Any]) -> list[PathChange]:
    """Return the changes of a rule of Kyverno: a merge without lists, or a plain JSON patch."""
    text = json.dumps(mutate)
    if "{{" in text or "$(" in text or mutate.keys() - {"patchStrategicMerge", "patchesJson6902"}:
        refuse(*UNKNOWN)
    merged = _merged(mutate.get("patchStrategicMerge") or {}, ())
    operations = yaml.safe_load(mutate.get("patchesJson6902") or "[]")
    return [*merged, *map(_operation, operations)]


def _merged(patch: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[PathChange]:
    for key, value in patch.items():
        found = ANCHOR.fullmatch(key)
        if found and (found["sort"] != "+" or ANCHOR.search(json.dumps(value))):
            refuse(f"it has the anchor {key}", UNKNOWN[1])
        path = (*above, found["key"] if found else key)
        if found:
            yield PathChange(path, value, "default")
        elif isinstance(value, Mapping) and value:
            yield from _merged(value, path)
        elif isinstance(value, Mapping | list) or value is None:
            refuse("it merges lists, or removes fields", UNKNOWN[1])
        else:
            yield PathChange(path, value)


def _operation(patch: Mapping[str, Any]) -> PathChange:
    _, *path = [each.replace("~1", "/").replace("~0", "~") for each in patch["path"].split("/")]
    is_in_list = any(each.lstrip("-").isdigit() or each == "-" for each in path)
    if patch["op"] not in ("add", "remove") or is_in_list:
        refuse("its patch replaces or moves, or changes a list", UNKNOWN[1])
    return PathChange(tuple(path), patch.get("value"), patch["op"])
