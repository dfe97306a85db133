"""Convert Gatekeeper's mutators to CEL: Assign, AssignMetadata, AssignImage and ModifySet.

Source: pkg/mutation of gatekeeper 3.23 (mutation_function.go, tester.go, imageparser.go).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gatewright.tools.cel_text import literal
from gatewright.tools.migrate.context import Context
from gatewright.tools.migrate.gatekeeper import scope_of
from gatewright.tools.migrate.kinds import KindNames
from gatewright.tools.migrate.mutations import (
    NOT_FIXED,
    CelValue,
    ListItems,
    PathChange,
    PathSteps,
    constant,
    mutation_to_cel,
)
from gatewright.tools.migrate.results import (
    EVERY_KIND,
    MUTATION,
    OMIT,
    ConvertedPolicy,
    Origin,
    refuse,
)

STEP = re.compile(
    r"""\.?(?:(?P<plain>[\w-]+)|"(?P<quoted>[^"\\]+)"|'(?P<single>[^'\\]+)')|"""
    r"""\[\s*(?P<key>[\w-]+)\s*:\s*(?P<item>\*|(?!\d)[\w-]+|"[^"\\]+"|'[^'\\]+')\s*\]"""
)
DOMAIN = "^([^/]*[.:][^/]*|localhost)/"


def convert_mutator(origin: Origin, context: Context) -> Iterator[ConvertedPolicy]:
    """Yield the mutation of a mutator."""
    value = origin.value
    spec = value["spec"]
    path = _steps(spec.get("location", ""))
    parameters = spec.get("parameters") or {}
    tests = _tests(parameters.get("pathTests") or (), path)
    if value["kind"] == "AssignMetadata":
        tests = {len(path): False}
    if parameters.get("operation") == "prune" and not tests.setdefault(len(path), True):
        refuse("it never changes anything", OMIT)
    written_value = _value(value["kind"], parameters)
    clause, conditions = scope_of(
        spec.get("match") or {}, context.kinds, context.excluded_from("mutation-webhook")
    )
    clause["kinds"] = _kinds(spec, clause.get("kinds", []), context.kinds)
    written = mutation_to_cel([PathChange(path, written_value, tests)], of_pods=False)
    written |= {"match": {"any": [clause]}} | conditions
    yield ConvertedPolicy(origin, written, value["metadata"]["name"])


def _steps(location: str) -> PathSteps:
    tokens = list(STEP.finditer(location))
    if not tokens or "".join(each[0] for each in tokens) != location:
        refuse(f"the location {location} cannot be read", MUTATION)
    path: list[str | ListItems] = []
    for token in tokens:
        if token["key"]:
            if not (path and isinstance(path[-1], str)):
                refuse(f"the location {location} cannot be read", MUTATION)
            item = token["item"].strip("\"'")
            path.append(ListItems() if item == "*" else ListItems(token["key"], item))
        else:
            path.append(token["plain"] or token["quoted"] or token["single"])
    return tuple(path)


def _tests(given: Any, path: PathSteps) -> dict[int, bool]:
    """Return which prefixes of a path must exist or be absent, by their length."""
    tests = dict[int, bool]()
    for test in given:
        beginning = _steps(test["subPath"])
        if beginning != path[: len(beginning)]:
            refuse("its pathTests are about other paths than its location", MUTATION)
        tests[len(beginning)] = test["condition"] == "MustExist"
    for end, step in enumerate(path, 1):
        if not isinstance(step, ListItems):
            continue
        if end == len(path) or (step.key and not tests.get(end)):
            refuse("it may add an item to a list; only existing items are changed", MUTATION)
        if False in (exists for length, exists in tests.items() if length <= end):
            refuse("it tests that the list that it changes is missing", MUTATION)
    return tests


def _value(kind: str, parameters: Mapping[str, Any]) -> CelValue:
    """Return the value to set at the path."""
    if kind == "AssignImage":
        return _image(*(parameters.get(f"assign{part}", "") for part in ("Domain", "Path", "Tag")))
    if kind == "ModifySet":
        values = parameters["values"]["fromList"]
        if not all(isinstance(each, str) for each in values) or len({*values}) < len(values):
            refuse("its values are not distinct texts", MUTATION)
        return _prune(values) if parameters.get("operation") == "prune" else _with(values)
    if kind not in ("Assign", "AssignMetadata") or "value" not in (parameters.get("assign") or {}):
        refuse(NOT_FIXED, MUTATION)
    return constant(parameters["assign"]["value"])


def _with(values: list[str]) -> CelValue:
    new = literal(values)
    return lambda field, there: (
        f"({there} ? {field} + {new}.filter(each, !(each in {field})) : {new})"
    )


def _prune(values: list[str]) -> CelValue:
    return lambda field, _there: f"{field}.filter(each, !(each in {literal(values)}))"


def _image(domain: str, path: str, tag: str) -> CelValue:
    """Return an image with parts replaced, split like Gatekeeper splits it."""
    old_domain = f"image.find({literal(DOMAIN)})"
    rest = f"image.substring({old_domain}.size())"
    parts = [
        literal(f"{domain}/") if domain else old_domain,
        literal(path) if path else f"{rest}.find('^[^:@]*')",
        literal(tag) if tag else f"{rest}.find('(?s)[:@].*')",
    ]
    return lambda field, there: f"[{there} ? {field} : ''].map(image, {' + '.join(parts)})[0]"


def _kinds(spec: Mapping[str, Any], matched: list[str], names: KindNames) -> list[str]:
    """Return the kinds of `match`, limited to those of `applyTo` if it is set."""
    applied = [
        names.spell(group, "*", kind)
        for target in spec.get("applyTo") or ()
        for group in target["groups"]
        for kind in target["kinds"]
    ]
    if matched and applied:
        kinds = [each for each in matched if each in applied]
        return kinds or refuse("`match` and `applyTo` have no kind in common", OMIT)
    return (
        matched or applied or refuse("it matches every kind; policies name their kinds", EVERY_KIND)
    )
