"""Every field of a child that a field of the parent's spec changes has an origin, so that a denial names it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from config.crds import definition
from controller.reconcilers import planned_kinds
from controller.reconcilers.postgresql import POSTGRESQL
from controller.reconcilers.resources import BACKUP, CLAIM
from controller.runtime.kind import PlannedKind
from controller.runtime.plan import Apply, CreateOnly, Observed
from kube.resource import JsonObject
from tests.controller.reconcilers.every_kind import NAMESPACE, REGISTRY, Case, cases
from webhook.engine.origins import trace_field

NOW = datetime(2026, 11, 21, tzinfo=UTC)
ANOTHER = "of-another-database"
RESTORABLE = {
    "source": {"type": "postgresql", "connection": {"host": "p", "secretRef": "login"}},
    "destination": {"bucket": "backups", "secretRef": {"name": "backup-store"}},
}
OF_EARLIER = {
    "app.kubernetes.io/component": "database",
    "app.kubernetes.io/version": "16",
}
SEEN = Observed(
    found={
        (BACKUP, "restore", ANOTHER): [
            {"metadata": {"name": ANOTHER, "namespace": "default"}, "spec": RESTORABLE}
        ],
        (CLAIM, "instance", "upgraded"): [
            {
                "metadata": {"name": "data-upgraded-0", "uid": "1", "labels": OF_EARLIER},
                "spec": {"resources": {"requests": {"storage": "10Gi"}}},
            }
        ],
    },
    settings={"registry": REGISTRY},
    served=frozenset(each for kind in planned_kinds() for each in kind.optional),
)
STRINGS = ("7 7 * * *", "2026-01-01T00:00:00Z", "77Gi", "9d", "/x", "app")
MAPS = ({"cpu": "7", "memory": "7Gi"}, {"a": "b"})
Path = tuple[str | int, ...]
Made = dict[tuple[str, str], Apply | CreateOnly]
# Its Job runs once, so the tests of children that come back leave it out.
RESTORED = {
    "metadata": {"name": "restored", "namespace": NAMESPACE},
    "spec": {"restoreFrom": {"backup": ANOTHER, "at": "2026-11-20T02:00:00Z"}},
}
UPGRADED = {
    "metadata": {"name": "upgraded", "namespace": NAMESPACE},
    "spec": {"version": "17", "majorUpgrade": "Reversible"},
}
CASES = (*cases(), Case(POSTGRESQL, RESTORED), Case(POSTGRESQL, UPGRADED))


@pytest.mark.long
@pytest.mark.parametrize("kind", planned_kinds(), ids=lambda kind: kind.name)
def test_every_field_of_a_child_that_changes_has_an_origin(kind: PlannedKind[Any]) -> None:
    """Each field of each spec is changed: the child's fields that change with it have an origin."""
    (version,) = (
        candidate
        for candidate in definition(kind.type)["spec"]["versions"]
        if candidate["name"] == kind.resource.version
    )
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    untraced, looked_at = set(), 0
    for object in (case.object for case in CASES if case.kind is kind):
        before = made(kind, object)
        for path, schema in leaves(spec):
            for changed, name, field, write in changes(kind, object, before, path, schema):
                looked_at += 1
                if trace_field(field, write.origin, changed) is None:
                    untraced.add((name[0], field, ".".join(map(str, path))))
    assert untraced == set(), (
        "add these to ORIGINS of the kind: (child, field of the child, field of the spec)"
    )
    assert looked_at > 0


def changes(
    kind: PlannedKind[Any], object: JsonObject, before: Made, path: Path, schema: JsonObject
) -> list[tuple[JsonObject, tuple[str, str], str, Apply | CreateOnly]]:
    """Return the changes of the children that exist with both values of a field."""
    for value in others(schema, at(object["spec"], path)):
        changed = object | {"spec": with_value(object["spec"], path, value)}
        found = [
            (changed, name, field, write)
            for name, write in made(kind, changed).items()
            if name in before
            for field in differences(before[name].object, write.object)
        ]
        if found:
            return found
    return []


def made(kind: PlannedKind[Any], object: JsonObject) -> Made:
    """Return an object's planned children; none if its type rejects it."""
    try:
        plan = kind.plan(kind.type.model_validate(object), SEEN, NOW)
    except ValidationError:
        return {}
    writes = (
        write
        for step in plan.steps
        for write in step.writes
        if isinstance(write, Apply | CreateOnly)
    )
    return (
        {}
        if plan.problem
        else {(each.object["kind"], each.object["metadata"]["name"]): each for each in writes}
    )


def leaves(schema: JsonObject, path: Path = ()) -> Iterator[tuple[Path, JsonObject]]:
    """Yield each field that a person sets, of lists that of the first item, of maps that of a key."""
    if "properties" in schema:
        for name, each in schema["properties"].items():
            yield from leaves(each, (*path, name))
    elif "properties" in schema.get("items", {}):
        yield from leaves(schema["items"], (*path, 0))
    elif "properties" in schema.get("additionalProperties", {}):
        yield from leaves(schema["additionalProperties"], (*path, "key"))
    else:
        yield path, schema


def others(schema: JsonObject, now: Any) -> tuple[Any, ...]:
    """Return other values; not all of them need be allowed."""
    if "enum" in schema:
        return tuple(each for each in schema["enum"] if each != now)[:2]
    if schema.get("x-kubernetes-int-or-string"):
        return ("77Gi", "18", "8.0")
    if schema.get("type") == "integer":
        return (now or 1) + 1, (now or 3) - 1
    kinds: dict[str, tuple[Any, ...]] = {
        "boolean": (not now,),
        "string": STRINGS,
        "object": MAPS,
        "array": ([],),
    }
    return kinds.get(schema.get("type", ""), ({"name": "another"},))


def at(value: Any, path: Path) -> Any:
    """Return the value at a path; None if there is none."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else value[0] if value else None
    return value


def with_value(object: Any, path: Path, value: Any) -> Any:
    """Return an object with another value at a path."""
    if not path:
        return value
    step, *rest = path
    if step == 0:
        first, *others = object or [{}]
        return [with_value(first, tuple(rest), value), *others]
    return {**(object or {}), step: with_value((object or {}).get(step), tuple(rest), value)}


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of differences, in the notation of violations."""
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            is_text = path.endswith(("labels", "annotations"))
            below = f"{path}[{key}]" if is_text else f"{path}.{key}".lstrip(".")
            yield from differences(before.get(key), after.get(key), below)
    elif (
        isinstance(before, list)
        and isinstance(after, list)
        and all("name" in each for each in (*before, *after))
    ):
        old, new = ({each["name"]: each for each in items} for items in (before, after))
        for name in sorted({*old, *new}):
            yield from differences(old.get(name), new.get(name), f"{path}[name={name}]")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, f"{path}[{place}]")
    else:
        yield path
