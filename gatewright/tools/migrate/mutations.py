"""Write changes at paths of an object as a JSONPatch in CEL, which creates missing parents."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from gatewright.tools.cel_text import every, literal, negate, present, select
from gatewright.tools.migrate.patterns import ANCHOR
from gatewright.tools.migrate.results import MUTATION, refuse

TEMPLATE = (
    "object.kind == 'Pod' ? '' : object.kind == 'CronJob' ? '/spec/jobTemplate/spec/template' : "
    "'/spec/template'"
)
NOT_FIXED = "it changes more than fields at fixed paths"

# Takes CEL for the field and for whether it exists; returns CEL for the value to set.
CelValue = Callable[[str, str], str]


class ListItems(NamedTuple):
    """A step of a path: the items of a list, or only those whose `key` is `value`."""

    key: str = ""
    value: str = ""


PathSteps = tuple[str | ListItems, ...]


class PathChange(NamedTuple):
    """A value to set at a path, or None to remove the field.

    `tests` maps the length of a prefix of the path to whether that prefix must exist.
    """

    path: PathSteps
    value: CelValue | None
    tests: Mapping[int, bool]


def constant(value: Any) -> CelValue:
    """Return a value that does not depend on the present one."""
    return lambda _field, _there: literal(value)


def mutation_to_cel(changes: Iterable[PathChange], of_pods: bool) -> dict[str, Any]:
    """Return a rule with the mutation; with `of_pods`, paths begin at the pod or pod template."""
    root, before = ("variables.pod", "variables.template + ") if of_pods else ("object", "")
    ensured = set[PathSteps]()
    terms = [_patches(each, root, before, ensured) for each in changes]
    patch = {"patchType": "JSONPatch", "jsonPatch": {"expression": " + ".join(terms)}}
    written: dict[str, Any] = {"mutations": [patch]}
    if of_pods:
        written["variables"] = [{"name": "template", "expression": TEMPLATE}]
    return written


def _patches(change: PathChange, root: str, before: str, ensured: set[PathSteps]) -> str:
    """Return the patches of a change; `ensured` are parents that an earlier change creates.

    They exist even if the test of the earlier change fails: an existing field has its parents.
    """
    at = next((at for at, step in enumerate(change.path) if isinstance(step, ListItems)), None)
    if at is not None:
        return _of_items(change, at, root, before)
    path = [str(step) for step in change.path]
    there = [_there(root, path[:end]) for end in range(len(path) + 1)]
    tests = [there[end] if exists else negate(there[end]) for end, exists in change.tests.items()]
    field = _at(root, path)
    if change.value is None:
        patches = [f"[JSONPatch{{op: 'remove', path: {before}{literal(_pointer(path))}}}]"]
    else:
        patches = [
            f"({negate(there[end])} ? {_add(before, path[:end], '{}')} : [])"
            for end in range(1, len(path))
            if change.path[:end] not in ensured
        ]
        ensured.update(change.path[:end] for end in range(1, len(path)))
        patches.append(_add(before, path, change.value(field, there[-1])))
    joined = " + ".join(patches)
    return f"({every(tests)} ? {joined} : [])" if tests else joined


def _of_items(change: PathChange, at: int, root: str, before: str) -> str:
    """Return the patches of a change below the list at step `at`; a missing list has no items."""
    items, path = change.path[at], [str(step) for step in change.path[:at]]
    assert isinstance(items, ListItems)
    index = "i" * (1 + root.count("[i"))
    item = f"{_at(root, path)}[{index}]"
    inner = PathChange(
        change.path[at + 1 :],
        change.value,
        {end - at - 1: exists for end, exists in change.tests.items() if end > at + 1},
    )
    patches = _patches(
        inner, item, f"{before}{literal(_pointer(path) + '/')} + string({index}) + ", set()
    )
    size = f"{_there(root, path)} ? {_at(root, path)}.size() : 0"
    indexes = f"lists.range({size})"
    if items.key:
        is_it = every(
            [present(item, items.key), f"{select(item, items.key)} == {literal(items.value)}"]
        )
        indexes += f".filter({index}, {is_it})"
    return f"{indexes}.map({index}, {patches}).flatten()"


def _there(root: str, path: Sequence[str]) -> str:
    """Return the test that a field and all its parents exist."""
    return every(present(_at(root, path[:at]), path[at]) for at in range(len(path)))


def _at(root: str, path: Sequence[str]) -> str:
    for key in path:
        root = select(root, key)
    return root


def _pointer(path: Sequence[str]) -> str:
    return "".join(f"/{key.replace('~', '~0').replace('/', '~1')}" for key in path)


def _add(before: str, path: Sequence[str], value: str) -> str:
    pointer = f"{before}{literal(_pointer(path))}"
    return f"[JSONPatch{{op: 'add', path: {pointer}, value: {value}}}]"


def changes_of(mutate: Mapping[str, Any]) -> list[PathChange]:
    """Return the changes of a rule of Kyverno: a merge without lists, or a plain JSON patch."""
    text = json.dumps(mutate)
    if "{{" in text or "$(" in text or mutate.keys() - {"patchStrategicMerge", "patchesJson6902"}:
        refuse(NOT_FIXED, MUTATION)
    merged = _merge(mutate.get("patchStrategicMerge") or {}, ())
    operations = yaml.safe_load(mutate.get("patchesJson6902") or "[]")
    return [*merged, *map(_operation, operations)]


def _merge(patch: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[PathChange]:
    for key, value in patch.items():
        match = ANCHOR.fullmatch(key)
        if match and (match["sort"] != "+" or ANCHOR.search(json.dumps(value))):
            refuse(f"an anchor is not converted: {key}", MUTATION)
        path = (*above, match["key"] if match else key)
        if match:
            yield PathChange(path, constant(value), {len(path): False})
        elif isinstance(value, Mapping) and value:
            yield from _merge(value, path)
        elif isinstance(value, Mapping | list) or value is None:
            refuse("it merges lists or removes fields", MUTATION)
        else:
            yield PathChange(path, constant(value), {})


def _operation(patch: Mapping[str, Any]) -> PathChange:
    _, *path = [each.replace("~1", "/").replace("~0", "~") for each in patch["path"].split("/")]
    is_in_list = any(each.lstrip("-").isdigit() or each == "-" for each in path)
    if patch["op"] not in ("add", "remove") or is_in_list:
        refuse(
            "its JSON patch changes list items, or does not only add and remove",
            MUTATION,
        )
    if patch["op"] == "remove":
        return PathChange(tuple(path), None, {len(path): True})
    return PathChange(tuple(path), constant(patch["value"]), {})
