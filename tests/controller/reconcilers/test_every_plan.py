"""Guarantees about the objects in every plan, children of children included: labels, images, names, origins."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from config.crds import definition
from config.defaulting import fill_crd_defaults
from config.field_paths import STEP
from config.settings import Settings
from controller.reconcilers import planned_kinds
from controller.runtime.kind import PlannedKind
from controller.runtime.plan import Observed
from gatewright.plans.children import Parent, Planned, plan_children
from gatewright.processes.planners import planners_of
from kube.resource import JsonObject
from tests.controller.reconcilers.every_kind import (
    NAMESPACE,
    PLATFORM,
    REGISTRY,
    Case,
    cases,
    containers,
    pods,
    templates,
)
from webhook.engine import Engine
from webhook.harness.reviews import Admission, ask
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import PolicySet, in_force

NOW = datetime(2026, 11, 21, tzinfo=UTC)
LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
DNS_NAME = re.compile(r"(?!.{254})[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
SERVED = frozenset(resource for kind in planned_kinds() for resource in kind.optional)


@pytest.fixture(params=cases(), ids=str)
def case(request: pytest.FixtureRequest) -> Case:
    """Each object in turn."""
    found: Case = request.param
    return found


def made(case: Case) -> list[Planned]:
    """Return all planned children and grandchildren of an object."""
    given = Observed(settings={"registry": REGISTRY}, served=SERVED)
    return list(
        plan_children(Parent(case.kind, case.object), NOW, given.settings, lambda parent: given)
    )


LABELS = {"team": "shop", "app.kubernetes.io/part-of": "mall"}
OTHERS = {"app": "other", "version": "7", "managed-by": "x", "helm.sh/chart": "a-1"}


def test_labels_are_handed_on_and_enter_no_selector(case: Case) -> None:
    """A user's labels are inherited by children and their templates, but not by selectors and immutable fields."""
    labelled = case.object["metadata"] | {"labels": LABELS | OTHERS}
    objects = made(Case(case.kind, case.object | {"metadata": labelled}))
    for object in objects:
        for part in (object.object, *templates(object.object)):
            found = part.get("metadata", {}).get("labels", {})
            assert found.items() >= LABELS.items(), (
                f"{object.resource.kind} {object.object['metadata']['name']}"
            )
            assert not found.items() & OTHERS.items()
    for object in objects:
        of = [*values(object.object, "selector"), *values(object.object, "matchLabels")]
        assert not [selector for selector in of if "team" in str(selector)]


def test_all_of_it_is_of_the_platform(case: Case) -> None:
    """Objects, pods, Jobs and claims have the label, so that a selector finds every part."""
    expected = case.name if case.kind.resource.kind == "EcommercePlatform" else PLATFORM
    for planned in made(case):
        for part in (planned.object, *templates(planned.object)):
            found = part.get("metadata", {}).get("labels", {}).get("platform")
            assert found == expected, (
                f"{planned.resource.kind} {planned.object['metadata']['name']}"
            )


def test_containers_of_gatewright_are_restricted_and_follow_the_registry(case: Case) -> None:
    """Their images come from the registry, and they have requests, limits and restricted security contexts."""
    theirs = set(values(case.object["spec"], "image"))
    for planned in made(case):
        for pod in pods(planned.object):
            for container in containers(pod):
                told = f"{planned.resource.kind} {planned.object['metadata']['name']}: {container['name']}"
                if container["image"] in theirs:
                    continue
                assert container["image"].startswith(f"{REGISTRY}/"), told
                for amounts in ("requests", "limits"):
                    assert container["resources"][amounts].keys() >= {"cpu", "memory"}, told
                context = pod["securityContext"] | container["securityContext"]
                assert context["runAsNonRoot"] is True, told
                assert context["allowPrivilegeEscalation"] is False, told
                assert context["readOnlyRootFilesystem"] is True, told
                assert context["capabilities"] == {"drop": ["ALL"]}, told
                assert context["seccompProfile"] == {"type": "RuntimeDefault"}, told
                assert context["runAsUser"] > 0, told
                assert pod.get("automountServiceAccountToken") is False or not pod.get("volumes"), (
                    told
                )


def values(value: Any, key: str) -> Iterator[Any]:
    """Yield the values of a key, anywhere in a value."""
    if isinstance(value, dict):
        yield from (each for name, each in value.items() if name == key)
    for item in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from values(item, key)


@pytest.mark.parametrize("kind", planned_kinds(), ids=lambda kind: kind.name)
def test_origins_lead_from_field_to_field(kind: PlannedKind[Any]) -> None:
    """Both fields of each origin exist: the child's and the parent's."""
    (version,) = (
        candidate
        for candidate in definition(kind.type)["spec"]["versions"]
        if candidate["name"] == kind.resource.version
    )
    schema = version["schema"]["openAPIV3Schema"]
    named: set[tuple[str, str]] = set()
    found: set[tuple[str, str]] = set()
    for case in cases():
        for planned in made(case) if case.kind is kind else ():
            if planned.parent.kind is kind:
                for child, parent in planned.write.origin.items():
                    assert has(schema, parent), f"{kind.resource.kind} has no {parent}"
                    named.add((planned.resource.kind, child))
                    found |= (
                        {(planned.resource.kind, child)} if there(planned.object, child) else set()
                    )
    assert named - found == set(), "add a case to every_kind.py in which the child has these fields"


def has(schema: JsonObject, path: str) -> bool:
    """Tell whether a schema has a field."""
    if path in ("", "metadata.name") or path.startswith("metadata.labels["):
        return True
    for step in STEP.finditer(path):
        schema = (
            schema.get("items") if step[1] is None else schema.get("properties", {}).get(step[1])
        )
        if schema is None:
            return False
    return True


def there(object: Any, path: str) -> bool:
    """Tell whether an object has a field."""
    above, is_label, _ = path.partition("metadata.labels[")  # of any name
    for step in STEP.finditer(f"{above}metadata.labels" if is_label else path):
        key, is_named, wanted = (step[1] or step[2]).partition("=")
        if is_named:
            object = next((each for each in object or () if each.get(key) == wanted), None)
        elif key.isdigit():
            object = (object or [None])[int(key)]
        else:
            object = object.get(key) if isinstance(object, dict) else None
    return object is not None


@pytest.mark.parametrize("kind", planned_kinds(), ids=lambda kind: kind.name)
def test_what_is_missing_is_named(kind: PlannedKind[Any]) -> None:
    """An object with an empty spec is planned by defaults, or it is Incomplete and the condition names the field."""
    object = fill_crd_defaults(
        {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind, "spec": {}}
    )
    object["metadata"] = {"name": "empty", "namespace": NAMESPACE}
    required = definition(kind.type)["spec"]["versions"][0]["schema"]["openAPIV3Schema"][
        "properties"
    ]["spec"].get("required")
    if required:  # the API server refuses it
        return
    plan = kind.plan(kind.type.model_validate(object), Observed(served=SERVED), NOW)
    if plan.problem is not None:
        assert plan.problem.reason == "Incomplete"
        assert re.search(r"\bspec\.[a-z]", plan.problem.message), plan.problem.message


@pytest.fixture(scope="module")
def engine() -> Engine:
    """An engine with the rules that are always in force, and with the planners."""
    return Engine(in_force(PolicySet(), catalogue()), planners_of(Settings(), NAMESPACE))


SHAPES = ("a" * 253, "1" * 253, ("a" * 20 + ".") * 12 + "a", "a-" * 126 + "a")


def test_admitted_names_give_children_valid_names(case: Case, engine: Engine) -> None:
    """The longest admitted names, with any allowed characters, give children valid names and labels."""
    for shape in SHAPES:
        longest, denied = 0, len(shape) + 1
        while denied - longest > 1:
            middle = (longest + denied) // 2
            if is_let_in(engine, called(case, shape[:middle])):
                longest = middle
            else:
                denied = middle
        assert longest >= 20 or shape[0] == "1", (
            f"nothing that begins with {shape[: longest + 1]} is allowed"
        )
        for name in (shape[:length] for length in range(longest, max(longest - 3, 0), -1)):
            assert not DNS_NAME.fullmatch(name) or list(faults(called(case, name))) == []


def called(case: Case, name: str) -> Case:
    """Return an object with another name."""
    return Case(case.kind, case.object | {"metadata": case.object["metadata"] | {"name": name}})


def is_let_in(engine: Engine, case: Case) -> bool:
    """Tell whether the webhook lets an object in; of names that the API server refuses, those a sign shorter."""
    named = called(case, case.name.rstrip(".-"))
    return ask(
        engine, Admission(object=named.object, namespace=NAMESPACE), {"now": NOW, "served_apis": ()}
    ).allowed


def faults(case: Case) -> Iterator[str]:
    """Yield names and labels of children that the API server or other controllers would reject."""
    for planned in made(case):
        kind, name = planned.resource.kind, planned.object["metadata"]["name"]
        limits = {"CronJob": 52, "Job": 63, "StatefulSet": 63 - len("-0123456789")}
        if len(name) > limits.get(kind, 253) or not (
            DNS_LABEL if kind == "Service" else DNS_NAME
        ).fullmatch(name):
            yield f"{kind} {name}"
        for part in (planned.object, *templates(planned.object)):
            labels = part.get("metadata", {}).get("labels", {})
            yield from (
                f"{kind} {name}: {key}={value}"
                for key, value in labels.items()
                if not LABEL.fullmatch(value)
            )


def test_a_clock_that_is_wrong_changes_no_child(case: Case) -> None:
    """However far the clock jumps, the children are the same, and the next look is in the future."""
    parsed = case.kind.type.model_validate(case.object)
    observed = Observed(settings={"registry": REGISTRY}, served=SERVED)
    usual = case.kind.plan(parsed, observed, NOW)
    for year in (1971, 2026, 2100):
        moment = datetime(year, 2, 28, 23, 59, 59, tzinfo=UTC)
        plan = case.kind.plan(parsed, observed, moment)
        assert [step.writes for step in plan.steps] == [step.writes for step in usual.steps], year
        assert plan.requeue_after is None or plan.requeue_after > timedelta(), year
