"""Prints the planned children of objects, with the release of Gatewright that PYTHONPATH names.

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
from controller.runtime.plan import Apply, CreateOnly, Observed

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
        writes = [write for step in plan.steps for write in step.writes]
        planned.append([each.object for each in writes if isinstance(each, Apply | CreateOnly)])
    release = str(Path(controller.__file__).parents[1])
    json.dump({"release": release, "planned": planned}, sys.stdout)


if __name__ == "__main__":
    main()
