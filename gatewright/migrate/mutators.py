"""Gatekeeper's AssignMetadata, and Assign at a path without lists, as mutations in CEL."""

import re
from collections.abc import Mapping
from typing import Any

from gatewright.migrate.gatekeeper import match_of
from gatewright.migrate.kinds import KindNames
from gatewright.migrate.mutations import UNKNOWN, PathChange, mutation_to_cel
from gatewright.migrate.results import Converted, ConvertedPolicy, Origin, refuse

GROUP = "mutations.gatekeeper.sh/"
STEP = re.compile(r"""\.?(?:([\w-]+)|"([^"]+)"|'([^']+)')""")


def convert_mutator(origin: Origin, names: KindNames) -> Converted:
    """Yield the mutation of an Assign or AssignMetadata."""
    value = origin.document.value
    spec = value["spec"]
    change = _change(value["kind"], spec)
    common, conditions = match_of(spec.get("match") or {}, names)
    kinds = _kinds(spec, common, names)
    written = mutation_to_cel([change], of_pods=False)
    if conditions:
        written["matchConditions"] = conditions
    clause = common["match"]["any"][0] if common else {}
    match = {"any": [clause | {"kinds": kinds}]}
    yield ConvertedPolicy(origin, written | {"match": match}, value["metadata"]["name"])


def _change(kind: str, spec: Mapping[str, Any]) -> PathChange:
    location, parameters = spec.get("location", ""), spec.get("parameters") or {}
    steps = list(STEP.finditer(location))
    path = tuple("".join(filter(None, each.groups())) for each in steps)
    is_plain = "".join(each[0] for each in steps) == location
    if kind not in ("Assign", "AssignMetadata") or "value" not in (parameters.get("assign") or {}):
        refuse(*UNKNOWN)
    if not path or not is_plain:
        refuse(f"the location {location} is in a list", UNKNOWN[1])
    value = parameters["assign"]["value"]
    if kind == "AssignMetadata":
        return PathChange(path, value, "default")
    tests = parameters.get("pathTests") or []
    missing = {"subPath": location, "condition": "MustNotExist"}
    if tests not in ([], [missing]):
        refuse("it tests other paths", UNKNOWN[1])
    return PathChange(path, value, "default" if tests else "add")


def _kinds(spec: Mapping[str, Any], common: Mapping[str, Any], names: KindNames) -> list[str]:
    """Return the kinds of `match` that `applyTo` names, too, where it is there."""
    matched = common["match"]["any"][0].get("kinds", []) if common else []
    applied = [
        names.spelled(group, "*", kind)
        for each in spec.get("applyTo") or ()
        for group in each["groups"]
        for kind in each["kinds"]
    ]
    kinds = [each for each in matched if each in applied] if matched and applied else []
    return kinds or matched or applied or refuse("it matches every kind")
