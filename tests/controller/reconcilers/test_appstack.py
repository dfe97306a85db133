"""The plan of an AppStack: tables of (spec, observed) -> plan."""

from datetime import UTC, datetime
from typing import Any

import pytest

from controller.reconcilers.appstack import APP_STACK
from controller.reconcilers.postgresql import POSTGRESQL
from controller.runtime.plan import CreateOnly, Observed, Plan
from kube.resource import JsonObject
from tests.controller.reconcilers.platforms import (
    IMAGES,
    container,
    deleted,
    given,
    made,
    ready,
    stack,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EVERYTHING: JsonObject = {"database": {}, "cache": {}, **IMAGES}


def planned(object: JsonObject, observed: Observed | None = None) -> Plan:
    """The plan of a stack."""
    return APP_STACK.plan(APP_STACK.type.model_validate(object), observed or Observed(), NOW)


@pytest.mark.parametrize(
    ("wanted", "needs"),
    [
        (
            ["database", "cache", "backend", "frontend"],
            {
                "database": (),
                "cache": ("database",),
                "backend": ("database", "cache"),
                "frontend": ("database", "cache", "backend"),
            },
        ),
        (["cache", "frontend"], {"cache": (), "frontend": ("cache",)}),
        (["frontend"], {"frontend": ()}),
        ([], {}),
    ],
)
def test_each_waits_for_all_before_it(wanted: list[str], needs: dict[str, tuple[str, ...]]) -> None:
    """Requested components have a condition; the others have none and delay nothing."""
    plan = planned(stack(**{name: EVERYTHING[name] for name in wanted}))
    asked_for = [step for step in plan.steps if step.condition]
    assert {step.name: tuple(step.depends_on) for step in asked_for} == needs
    assert [step.condition for step in asked_for] == [f"{name.capitalize()}Ready" for name in needs]
    assert all(not step.writes and step.ready for step in plan.steps if not step.condition)


def test_components_are_those_of_a_platform() -> None:
    """Names, sizes and variables are the same; only the label differs."""
    objects = made(planned(stack(**EVERYTHING)))
    assert list(objects) == [
        ("PostgreSQL", "shop-db"),
        ("Deployment", "shop-cache"),
        ("Service", "shop-cache"),
        ("Deployment", "shop-backend"),
        ("Service", "shop-backend"),
        ("Deployment", "shop-frontend"),
        ("Service", "shop-frontend"),
    ]
    assert {each["metadata"]["labels"]["stack"] for each in objects.values()} == {"shop"}
    names = [each["name"] for each in container(objects, "shop-frontend")["env"]]
    assert names == ["BACKEND_URL", "CACHE_URL"]


def test_the_label_of_a_platform_is_handed_on() -> None:
    """The children of a stack that is part of a platform have the platform's label."""
    labelled = stack(**EVERYTHING)
    labelled["metadata"] = {**labelled["metadata"], "labels": {"platform": "store"}}
    assert {
        object["metadata"]["labels"]["platform"] for object in made(planned(labelled)).values()
    } == {"store"}


def test_a_frontend_alone_has_no_addresses_of_other_components() -> None:
    """No variable names a missing component."""
    objects = made(planned(stack(frontend=IMAGES["frontend"])))
    assert container(objects, "shop-frontend")["env"] == []


@pytest.mark.parametrize(
    ("type", "left_out", "removed"),
    [
        ("postgresql", "database", ["postgresqls/shop-db"]),
        (
            "mysql",
            "database",
            ["statefulsets/shop-db", "services/shop-db", "services/shop-db-headless"],
        ),
        ("postgresql", "cache", ["deployments/shop-cache", "services/shop-cache"]),
        ("postgresql", "backend", ["deployments/shop-backend", "services/shop-backend"]),
        ("postgresql", "frontend", ["deployments/shop-frontend", "services/shop-frontend"]),
    ],
)
def test_a_removed_component_is_deleted(type: str, left_out: str, removed: list[str]) -> None:
    """Its objects are deleted by uid, except volumes and passwords."""
    everything: dict[str, Any] = {**EVERYTHING, "database": {"type": type}}
    before = made(planned(stack(**everything))).values()
    fewer = {name: value for name, value in everything.items() if name != left_out}
    assert deleted(planned(stack(**fewer), given(before))) == removed


@pytest.mark.parametrize(
    ("type", "kept"),
    [
        (
            "postgresql",
            ["shop-db-credentials", "shop-db-user-app", "shop-db-backup", "data-shop-db-0"],
        ),
        ("mysql", ["shop-db-mysql-credentials", "shop-db-mysql-backup", "mysql-shop-db-0"]),
    ],
)
def test_each_database_keeps_what_it_has_under_names_of_its_own(type: str, kept: list[str]) -> None:
    """Secrets and claims of the two types do not conflict, so that each can replace the other."""
    plan = planned(stack(database={"type": type, "backup": {"enabled": True}}))
    if type == "postgresql":
        child = made(plan)["PostgreSQL", "shop-db"]
        plan = POSTGRESQL.plan(POSTGRESQL.type.model_validate(child), Observed(), NOW)
    once = [
        write.object
        for step in plan.steps
        for write in step.writes
        if isinstance(write, CreateOnly) and write.object["kind"] not in ("Endpoints", "Service")
    ]
    (template,) = made(plan)["StatefulSet", "shop-db"]["spec"]["volumeClaimTemplates"]
    claim = f"{template['metadata']['name']}-shop-db-0"
    assert [*(each["metadata"]["name"] for each in once), claim] == kept


def test_readiness_that_is_lost_is_reported_and_nothing_is_torn_down() -> None:
    """If the database fails later, the other components stay."""
    before = [ready(each) for each in made(planned(stack(**EVERYTHING))).values()]
    running = {"phase": "Running", "observedGeneration": 1}
    observed = Observed(children=[each for each in before if each["kind"] != "PostgreSQL"])
    plan = planned(stack(**EVERYTHING) | {"status": running}, observed)
    assert plan.status.to_api()["phase"] == "Degraded"
    assert [step.name for step in plan.steps if not step.ready] == ["database"]
    assert (deleted(plan), len(made(plan))) == ([], 7)


def test_a_stack_of_nothing_runs() -> None:
    """A stack without components is Running at once."""
    assert planned(stack()).status.to_api() == {"phase": "Running", "endpoints": {}}
