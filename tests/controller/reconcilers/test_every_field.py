"""Every field of a spec changes a plan: none is accepted and then ignored."""

from collections import defaultdict
from typing import Any

import pytest
from pydantic import ValidationError

from config.crds import definition
from controller.reconcilers import planned_kinds
from controller.runtime.kind import PlannedKind
from controller.runtime.plan import Plan
from kube.resource import JsonObject
from tests.controller.reconcilers.test_every_origin import (
    CASES,
    NOW,
    SEEN,
    Path,
    at,
    leaves,
    others,
    with_value,
)

PASSED_ON = {"resources", "securityContext"}  # their own fields are not read one by one


@pytest.mark.parametrize("kind", planned_kinds(), ids=lambda kind: kind.name)
def test_every_field_changes_a_plan(kind: PlannedKind[Any]) -> None:
    """Another value of it changes a child, the status or the problem, in a sample or a larger object."""
    (spec,) = (
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        for version in definition(kind.type)["spec"]["versions"]
        if version["name"] == kind.resource.version
    )
    objects = [case.object for case in CASES if case.kind is kind]
    fields = defaultdict(list)
    for path, schema in leaves(spec):
        fields[passed_on(path)].append((path, schema))
    without_effect = {
        ".".join(map(str, field))
        for field, below in fields.items()
        if not any(has_effect(kind, object, *each) for each in below for object in objects)
    }
    assert without_effect == set(), (
        "read these fields in plan(), or set them in a case of every_kind.py where they matter"
    )


def passed_on(path: Path) -> Path:
    """Return the path of a field of Kubernetes' own that is passed on whole, or the path itself."""
    places = [place for place, step in enumerate(path) if step in PASSED_ON]
    return path[: places[0] + 1] if places else path


def has_effect(kind: PlannedKind[Any], object: JsonObject, path: Path, schema: JsonObject) -> bool:
    """Return whether another value of a field changes an object's plan."""
    before = plan(kind, object)
    changed = (
        plan(kind, object | {"spec": with_value(object["spec"], path, value)})
        for value in others(schema, at(object["spec"], path))
    )
    return any(after is not None and after != before for after in changed)


def plan(kind: PlannedKind[Any], object: JsonObject) -> Plan | None:
    """Return an object's plan; None if its type rejects it."""
    try:
        return kind.plan(kind.type.model_validate(object), SEEN, NOW)
    except ValidationError:
        return None
