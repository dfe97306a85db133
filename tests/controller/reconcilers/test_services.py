"""The services of AppStacks and EcommercePlatforms: order, environment, conditions, removal."""

from datetime import UTC, datetime
from typing import Any

import pytest

from config.api.meta import CustomResource
from controller.reconcilers import planned_kinds
from controller.reconcilers.appstack import APP_STACK
from controller.reconcilers.ecommerceplatform import ECOMMERCE_PLATFORM
from controller.reconcilers.monitoring import PROMETHEUS_RULE, SERVICE_MONITOR
from controller.reconcilers.resources import DEPLOYMENT, SERVICE
from controller.runtime.plan import Observed, Plan
from controller.runtime.status import of_type
from gatewright.testing import ApiServer, reconcile
from kube.resource import JsonObject
from tests.controller.reconcilers.platforms import container, made, platform, stack

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ORDERS: JsonObject = {
    "name": "orders",
    "image": "shop/orders:1",
    "dependsOn": ["database", "cache"],
}
MAIL: JsonObject = {
    "name": "order-mail",
    "image": "shop/mail:1",
    "port": 9000,
    "dependsOn": ["orders"],
}


def planned(*services: JsonObject, observed: Observed | None = None, **spec: Any) -> Plan:
    """The plan of a stack with a database, a cache and these services."""
    object = stack(database={}, cache={}, services=list(services), **spec)
    return APP_STACK.plan(APP_STACK.type.model_validate(object), observed or Observed(), NOW)


def needs(plan: Plan) -> dict[str, tuple[str, ...]]:
    """What each requested component waits for."""
    return {step.name: tuple(step.depends_on) for step in plan.steps if step.condition}


def test_a_service_waits_for_what_it_depends_on() -> None:
    """The order in the spec does not matter; conditions name the services."""
    plan = planned(MAIL, ORDERS)
    assert needs(plan) == {
        "database": (),
        "cache": ("database",),
        "orders": ("database", "cache"),
        "order-mail": ("orders",),
    }
    conditions = {step.name: (step.condition, step.note) for step in plan.steps}
    assert conditions["order-mail"] == ("OrderMailReady", "waiting for orders")
    assert conditions["orders"] == ("OrdersReady", "waiting for database, cache")


def test_its_environment_has_the_addresses_of_what_it_depends_on() -> None:
    """The login of the database, URLs of the others; nothing of what it does not depend on."""
    objects = made(planned(ORDERS, MAIL))
    orders = [each["name"] for each in container(objects, "shop-orders")["env"]]
    assert orders == [
        "DATABASE_HOST",
        "DATABASE_PORT",
        "DATABASE_NAME",
        "DATABASE_USER",
        "DATABASE_PASSWORD",
        "DATABASE_URL",
        "CACHE_URL",
    ]
    assert container(objects, "shop-order-mail")["env"] == [
        {"name": "ORDERS_URL", "value": "http://shop-orders.eu.svc:8080"}
    ]
    assert objects["Service", "shop-order-mail"]["spec"]["ports"][0]["port"] == 9000


def test_a_dependency_that_is_named_twice_counts_once() -> None:
    """The API server would reject a container with two variables of one name."""
    twice = planned(ORDERS, {**MAIL, "dependsOn": ["orders", "orders"]})
    assert made(twice) == made(planned(ORDERS, MAIL))
    assert needs(twice)["order-mail"] == ("orders",)


@pytest.mark.parametrize(
    ("services", "field"),
    [
        ([{**MAIL, "dependsOn": ["nothing"]}], "dependsOn: nothing; it is no service"),
        ([{**MAIL, "dependsOn": ["order-mail"]}], "dependsOn: order-mail -> order-mail; it waits"),
        ([{**MAIL, "name": "cache"}], "name: cache; objects of the stack"),
        ([{"name": "mail"}], "image: must be set"),
    ],
)
def test_a_fault_is_the_problem_of_its_service_alone(
    services: list[JsonObject], field: str
) -> None:
    """The condition names the field; the other services are planned."""
    name = services[0]["name"]
    plan = planned(*services, ORDERS)
    assert plan.problem is not None
    assert f"spec.services[name={name}].{field}" in plan.problem.message
    assert ("Deployment", "shop-orders") in made(plan)


def test_a_platform_has_services_too() -> None:
    """They are scraped like backend and frontend."""
    object = platform(services=[ORDERS], monitoring={"alerts": True})
    parsed: CustomResource = ECOMMERCE_PLATFORM.type.model_validate(object)
    monitored = Observed(served=frozenset({SERVICE_MONITOR, PROMETHEUS_RULE}))
    plan = ECOMMERCE_PLATFORM.plan(parsed, monitored, NOW)
    objects = made(plan)
    assert objects["Deployment", "shop-orders"]["metadata"]["labels"]["platform"] == "shop"
    selected = objects["ServiceMonitor", "shop"]["spec"]["selector"]["matchExpressions"][0]
    assert selected["values"] == ["backend", "frontend", "orders"]
    assert "shop-(cache|backend|frontend|orders)" in str(objects["PrometheusRule", "shop"])
    plan = ECOMMERCE_PLATFORM.plan(parsed, Observed(), NOW)
    annotations = made(plan)["Service", "shop-orders"]["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == "8080"


async def test_a_removed_service_is_deleted_and_others_stay() -> None:
    """Its Deployment and Service go, also if a process ended between the two deletions."""
    async with ApiServer(*planned_kinds()) as server:
        object = stack(services=[{**ORDERS, "dependsOn": []}, {**MAIL, "dependsOn": []}])
        object["metadata"] = {"name": "shop", "namespace": "default"}
        server.create(APP_STACK.resource, object)
        await reconcile(APP_STACK, server, "shop", "default")
        assert names(server) == ["shop-order-mail", "shop-orders"] * 2
        server.delete(SERVICE, "shop-order-mail", "default")
        change = {"spec": {"services": [{**ORDERS, "dependsOn": []}]}}
        server.change(APP_STACK.resource, "shop", change, "default")
        await reconcile(APP_STACK, server, "shop", "default")
        assert names(server) == ["shop-orders"] * 2
        stored = server.get(APP_STACK.resource, "shop", "default")
        assert stored is not None
        conditions = stored["status"]["conditions"]
        assert of_type("OrdersReady", conditions) is not None
        assert of_type("OrderMailReady", conditions) is None


def names(server: ApiServer) -> list[str]:
    """The names of the Deployments and of the Services."""
    return [
        object["metadata"]["name"]
        for resource in (DEPLOYMENT, SERVICE)
        for object in sorted(
            server.list(resource, "default"), key=lambda each: str(each["metadata"]["name"])
        )
    ]
