"""Every CRD: columns for kubectl, and descriptions, defaults and validation for authors of manifests."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from config.api.meta import CustomResource
from config.crds import definition
from controller.reconcilers import planned_kinds
from kube.resource import JsonObject

KINDS = [kind.type for kind in planned_kinds()]
REQUIRED = {
    "WebApp": {"spec", "spec.replicas", "spec.image"}
}  # published; nothing else may be added, anywhere


@pytest.fixture(params=KINDS, ids=lambda kind: kind.definition.kind)
def kind(request: pytest.FixtureRequest) -> type[CustomResource]:
    """Each kind in turn."""
    found: type[CustomResource] = request.param
    return found


@cache
def version(kind: type[CustomResource]) -> dict[str, Any]:
    """Return a kind's version in its definition."""
    (found,) = definition(kind)["spec"]["versions"]
    return dict(found)


def schema(kind: type[CustomResource]) -> JsonObject:
    """Return a kind's schema."""
    return dict(version(kind)["schema"]["openAPIV3Schema"])


def test_kubectl_knows_it(kind: type[CustomResource]) -> None:
    """`kubectl get gatewright`, `get all` and a short name list it, in columns with words for each and its age."""
    spec = definition(kind)["spec"]
    names = spec["names"]
    assert spec["scope"] == "Namespaced"
    assert names["categories"] == ["gatewright", "all"]
    assert names["singular"] == names["kind"].lower()
    columns = version(kind)["additionalPrinterColumns"]
    assert len(columns) >= 3
    assert columns[-1]["name"] == "Age" or any(each["name"] == "Age" for each in columns)
    for column in columns:
        assert has(schema(kind), column["jsonPath"]), column


def test_a_phase_that_is_shown_may_be_failed() -> None:
    """The runtime sets the phase Failed for any kind that cannot be planned."""
    shown = [kind for kind in planned_kinds() if kind.shows_phase]
    phases = [
        schema(kind.type)["properties"]["status"]["properties"]["phase"]["enum"] for kind in shown
    ]
    assert [kind.resource.kind for kind in shown] == [
        "AppStack",
        "EcommercePlatform",
        "PostgreSQL",
        "WebApp",
    ]
    assert all("Failed" in each for each in phases)


def test_short_names_are_unique() -> None:
    """Each short name belongs to one kind."""
    names = [name for kind in KINDS for name in kind.definition.short_names]
    assert len(set(names)) == len(names)


def test_its_status_is_one(kind: type[CustomResource]) -> None:
    """It is a subresource, with observedGeneration and with conditions that are merged by type."""
    assert version(kind)["subresources"]["status"] == {}
    status = schema(kind)["properties"]["status"]["properties"]
    assert status["observedGeneration"] == {
        **status["observedGeneration"],
        "type": "integer",
        "format": "int64",
    }
    conditions = status["conditions"]
    assert (conditions["x-kubernetes-list-type"], conditions["x-kubernetes-list-map-keys"]) == (
        "map",
        ["type"],
    )
    assert {
        "type",
        "status",
        "reason",
        "message",
        "lastTransitionTime",
        "observedGeneration",
    } <= set(conditions["items"]["properties"])


def test_no_more_is_required_than_is_published(kind: type[CustomResource]) -> None:
    """Only published fields of the spec are required, keys of list items, and fields that core/v1 requires."""
    top = schema(kind)
    found = {"spec"} & set(top.get("required", ())) | set(
        required(top["properties"]["spec"], "spec")
    )
    assert found == REQUIRED.get(kind.definition.kind, set())


def test_unset_fields_are_shown_with_their_defaults(kind: type[CustomResource]) -> None:
    """An object without a spec gets the defaults, so that columns show them."""
    spec = schema(kind)["properties"]["spec"]
    defaults = {name for name, each in spec["properties"].items() if "default" in each}
    assert (
        not defaults
        or "spec" in schema(kind).get("required", ())
        or defaults <= spec["default"].keys()
    )


OF_CORE = ("securityContext", "env", "seccompProfile", "appArmorProfile")


def required(schema: JsonObject, path: str) -> Iterator[str]:
    """Yield the required fields below a path, except those of core/v1 and the keys of lists."""
    yield from (f"{path}.{name}" for name in schema.get("required", ()))
    for name, each in schema.get("properties", {}).items():
        if name not in OF_CORE:
            yield from required(each, f"{path}.{name}")
    if "items" in schema:
        keys = {f"{path}[].{key}" for key in schema.get("x-kubernetes-list-map-keys", ())}
        yield from (each for each in required(schema["items"], f"{path}[]") if each not in keys)


def has(schema: JsonObject, path: str) -> bool:
    """Tell whether a schema has the field that a column shows."""
    for step in path.partition("[")[0].strip(".").split("."):
        if step == "metadata":
            return True
        schema = schema.get("properties", {}).get(step)
        if schema is None:
            return False
    return True
