"""Derived trials: a case with init containers, a generated name, or as an update."""

import copy
import re
from dataclasses import replace

from config.field_paths import value_at
from webhook.harness.bases import POD_SPEC, has_smallest, pod_path, smallest
from webhook.harness.case_file import Derivation, Expected, ExpectedAnswer
from webhook.harness.reviews import Admission

LISTS: dict[Derivation, str] = {"init": "initContainers", "ephemeral": "ephemeralContainers"}
OTHER = {"name": "other", "image": POD_SPEC["containers"][0]["image"]}
CONTAINERS = re.compile(r"(?<![A-Za-z])containers\[")


def derive(admission: Admission, how: Derivation) -> Admission:
    """Return the derived `admission`.

    Raises LookupError, with the reason, if it cannot be derived.
    """
    object = admission.object
    if object is None or admission.operation != "CREATE" or admission.subresource:
        raise LookupError("only a CREATE of a whole object can be derived")
    if how == "generateName":
        metadata = {key: value for key, value in object["metadata"].items() if key != "name"}
        return replace(
            admission,
            object={**object, "metadata": {**metadata, "generateName": "case-"}},
            parent_name="",
        )
    kind = object["kind"]
    if how == "update":
        if kind not in has_smallest():
            raise LookupError(f"no smallest {kind} is known; use `old_object`")
        name = object["metadata"].get("name", "case")
        return replace(
            admission, old_object=smallest(kind, name, admission.namespace), operation="UPDATE"
        )
    path = pod_path(kind)
    if path is None:
        raise LookupError(f"a {kind} has no pod spec")
    if how == "ephemeral" and kind != "Pod":
        raise LookupError("only a Pod has ephemeral containers")
    moved = copy.deepcopy(object)
    pod = value_at(moved, path)
    if not isinstance(pod, dict) or not isinstance(pod.get("containers"), list):
        raise LookupError("the object has no containers")
    containers, pod["containers"] = pod["containers"], [OTHER]
    if how == "init":
        pod["initContainers"] = [*pod.get("initContainers", ()), *containers]
        return replace(admission, object=moved)
    old = copy.deepcopy(moved)
    pod["ephemeralContainers"] = [*pod.get("ephemeralContainers", ()), *containers]
    return replace(
        admission,
        object=moved,
        old_object=old,
        operation="UPDATE",
        subresource="ephemeralcontainers",
    )


def expected_of(expect: str | ExpectedAnswer, how: Derivation) -> str | ExpectedAnswer:
    """Return the expectation of a derived trial, with paths of the new container list."""
    if isinstance(expect, str) or how not in LISTS:
        return expect
    if expect.patched:
        raise LookupError("`patched` names the container list; write a separate case")
    moved = {
        name: [_move(each, LISTS[how]) for each in getattr(expect, name)]
        for name in expect.model_fields_set
    }
    return expect.model_copy(update=moved)


def _move(expected: Expected, containers: str) -> Expected:
    def there(text: str) -> str:
        return CONTAINERS.sub(f"{containers}[", text)

    message = None if expected.message is None else there(expected.message)
    return expected.model_copy(update={"path": there(expected.path), "message": message})
