"""Label and field selectors of list and watch requests."""

import re
from collections.abc import Callable
from typing import Any

from gatewright.testing.fake_apiserver.definitions import ServedResource
from gatewright.testing.fake_apiserver.refusals import StatusError
from kube.resource import JsonObject
from webhook.engine.match import meets

Matches = Callable[[JsonObject], bool]
SET = re.compile(r"^(\S+)\s+(in|notin)\s+\(([^)]*)\)$")


def matcher(definition: ServedResource, labels: str, fields: str) -> Matches:
    """Return a predicate: whether both selectors match an object."""
    tests = [label_test(part) for part in split(labels)] + [
        field_test(definition, part) for part in split(fields)
    ]
    return lambda each: all(test(each) for test in tests)


def split(selector: str) -> list[str]:
    """Split a selector into requirements, at commas outside of brackets."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", selector) if part.strip()]


def label_test(requirement: str) -> Matches:
    """Return a predicate: whether an object's labels meet a requirement."""
    name, how, values = label_requirement(requirement)
    return lambda each: meets(labels_of(each), name, how, values)


def label_requirement(requirement: str) -> tuple[str, str, set[str]]:
    """Return the label, the operator and the values of a requirement in its short notation."""
    if match := SET.match(requirement):
        name, how, listed = match.groups()
        values = {value.strip() for value in listed.split(",")}
        return name, "In" if how == "in" else "NotIn", values
    name, sign, value = operator(requirement)
    if sign:
        return name, "NotIn" if sign == "!=" else "In", {value}
    if requirement.startswith("!"):
        return requirement[1:], "DoesNotExist", set()
    return requirement, "Exists", set()


def field_test(definition: ServedResource, requirement: str) -> Matches:
    """Return the test of one requirement on fields; only selectable fields are allowed."""
    name, sign, value = operator(requirement)
    selectable = {"metadata.name", "metadata.namespace", *definition.selectable}
    if not sign or name not in selectable:
        raise StatusError(400, f"field label not supported: {name}")
    equal = sign != "!="
    return lambda each: (str(at(each, name) or "") == value) == equal


def operator(requirement: str) -> tuple[str, str, str]:
    """Return the name, the operator ("" if there is none) and the value of a requirement."""
    match = re.match(r"^([^=!]+)(!=|==|=)(.*)$", requirement)
    return (match[1].strip(), match[2], match[3].strip()) if match else (requirement, "", "")


def labels_of(object: JsonObject) -> dict[str, str]:
    """Return the labels of an object."""
    return object["metadata"].get("labels") or {}


def at(object: Any, path: str) -> Any:
    """Return the value at a dotted path, or None."""
    for name in path.split("."):
        object = object.get(name) if isinstance(object, dict) else None
    return object
