"""Prints the children of objects as they would be applied, with the release of Gatewright that PYTHONPATH names.

The input is a JSON list of pairs: an object, and its stored children. The output has the directory
of the release, and a list of children for each pair; of an object that cannot be planned, none.
"""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

import controller
from controller.reconcilers import planned_kinds
from controller.runtime.child import child_of
from controller.runtime.observed import Owner
from controller.runtime.plan import Apply, CreateOnly, Observed
from controller.runtime.types import ReconcileRequest

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def main() -> None:
    """Plan each object."""
    kinds = {kind.resource.kind: kind for kind in planned_kinds()}
    planned = []
    for parent, children in json.load(sys.stdin):
        kind = kinds[parent["kind"]]
        try:
            plan = kind.plan(kind.type.model_validate(parent), Observed(children=children), NOW)
        except ValidationError:
            planned.append([])
            continue
        request = ReconcileRequest("default", parent["metadata"]["name"])
        owner = Owner(request, kind.resource, parent)
        writes = [
            write
            for step in plan.steps
            for write in step.writes
            if isinstance(write, Apply | CreateOnly)
        ]
        resources = {(each.api_version, each.kind): each for each in kind.owns}
        planned.append(
            [
                child_of(owner, write, resources[write.object["apiVersion"], write.object["kind"]])
                for write in writes
            ]
        )
    release = str(Path(controller.__file__).parents[1])
    json.dump({"release": release, "planned": planned}, sys.stdout)


if __name__ == "__main__":
    main()
