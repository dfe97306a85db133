"""The queue of a stack or platform: its objects, what its users get, and how it changes."""

from datetime import UTC, datetime
from typing import Any

import pytest

from controller.reconcilers.appstack import APP_STACK
from controller.reconcilers.ecommerceplatform import ECOMMERCE_PLATFORM
from controller.reconcilers.resources import CLAIM
from controller.reconcilers.servers import INDEX, READS_CLAIMS, by_parent
from controller.runtime.kind import PlannedKind
from controller.runtime.plan import CreateOnly, Observed, Plan, Random
from kube.resource import JsonObject
from tests.controller.reconcilers.platforms import (
    IMAGES,
    container,
    deleted,
    given,
    made,
    platform,
    stack,
    unready,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MAIL = {"name": "mail", "image": "shop/mail:1", "dependsOn": ["queue"]}


def plan_of(kind: PlannedKind[Any], object: JsonObject, observed: Observed | None = None) -> Plan:
    """The plan of a stack or a platform."""
    return kind.plan(kind.type.model_validate(object), observed or Observed(), NOW)


def planned(observed: Observed | None = None, **queue: Any) -> Plan:
    """The plan of a stack with a queue."""
    return plan_of(APP_STACK, stack(queue=queue, services=[MAIL], **IMAGES), observed)


def message(plan: Plan) -> str | None:
    """The problem of a plan."""
    return plan.problem and plan.problem.message


@pytest.mark.parametrize(
    ("type", "image", "port", "scheme"),
    [("rabbitmq", "rabbitmq:4.2", 5672, "amqp"), ("nats", "nats:2.14-alpine", 4222, "nats")],
)
def test_it_has_a_secret_a_volume_and_two_services(
    type: str, image: str, port: int, scheme: str
) -> None:
    """Backend and dependent services get its address and password, and the frontend does not."""
    plan = planned(type=type)
    objects = made(plan)
    server = objects["StatefulSet", "shop-queue"]["spec"]
    (template,) = server["volumeClaimTemplates"]
    assert template["metadata"]["name"] == type
    assert template["spec"]["resources"] == {"requests": {"storage": "1Gi"}}
    assert container(objects, "shop-queue")["image"] == image
    (secret,) = (
        write for step in plan.steps for write in step.writes if isinstance(write, CreateOnly)
    )
    assert secret.object["metadata"]["name"] == f"shop-queue-{type}-credentials"
    assert secret.generate == {"data.password": Random(32)}
    assert {name for kind, name in objects if kind == "Service" and "queue" in name} == {
        "shop-queue",
        "shop-queue-headless",
    }
    reference = {"name": f"shop-queue-{type}-credentials", "key": "password"}
    variables = [
        {"name": "QUEUE_HOST", "value": "shop-queue"},
        {"name": "QUEUE_PORT", "value": str(port)},
        {"name": "QUEUE_USER", "value": "app"},
        {"name": "QUEUE_PASSWORD", "valueFrom": {"secretKeyRef": reference}},
        {
            "name": "QUEUE_URL",
            "value": f"{scheme}://$(QUEUE_USER):$(QUEUE_PASSWORD)@$(QUEUE_HOST):$(QUEUE_PORT)",
        },
    ]
    assert container(objects, "shop-backend")["env"] == variables
    assert container(objects, "shop-mail")["env"] == variables
    names = {each["name"] for each in container(objects, "shop-frontend")["env"]}
    assert names == {"BACKEND_URL"}


def test_backend_and_dependent_services_wait_for_it() -> None:
    """Its condition reports its progress; the platform's backend waits for it, too."""
    steps = {step.name: step for step in planned().steps}
    assert steps["queue"].condition == "QueueReady"
    assert "queue" in steps["backend"].depends_on
    assert steps["mail"].depends_on == ["queue"]
    of_platform = plan_of(ECOMMERCE_PLATFORM, platform(queue={}))
    assert {s.name: s.depends_on for s in of_platform.steps}["backend"] == ["database", "queue"]
    server = made(planned())["StatefulSet", "shop-queue"]
    plan = planned(Observed(children=[unready(server)]))
    assert {s.name: s.note for s in plan.steps}["queue"] == "0 of 1 replicas are ready"


def test_without_one_nothing_is_planned() -> None:
    """A removed queue leaves its volume and Secret; its server and Services are deleted."""
    before = made(planned()).values()
    plan = plan_of(APP_STACK, stack(services=[], **IMAGES), given(before))
    assert [each for each in deleted(plan) if "queue" in each] == [
        "statefulsets/shop-queue",
        "services/shop-queue",
        "services/shop-queue-headless",
    ]
    absent = plan_of(APP_STACK, stack(**IMAGES))
    assert [s.writes for s in absent.steps if s.name == "queue"] == [[]]
    assert [s.condition for s in absent.steps if s.name == "queue"] == [""]


def test_its_type_stays() -> None:
    """An existing queue of another type has the messages: nothing changes, and variables stay."""
    before = made(planned(type="nats")).values()
    plan = planned(given(before), type="rabbitmq")
    assert message(plan) == (
        "Queue deployment failed: it is nats, and spec.queue.type: rabbitmq would leave its messages "
        "behind; set it back"
    )
    assert ("StatefulSet", "shop-queue") not in made(plan)
    variables = {e["name"]: e.get("value") for e in container(made(plan), "shop-backend")["env"]}
    assert variables["QUEUE_PORT"] == "4222"


@pytest.mark.parametrize(
    ("data", "requested", "runs", "problem"),
    [
        ("4.2", None, "4.2", None),
        ("4.1", "4.2", "4.2", None),
        ("4.2.3", "4.2", "4.2", None),
        ("4.2", "4", "4", None),
        (
            "4.2",
            "4.1",
            "4.2",
            "Queue deployment failed: spec.queue.version: 4.1; rabbitmq 4.1 cannot open the data of "
            "4.2. Set it back to 4.2, or use another queue",
        ),
    ],
)
def test_a_version_never_goes_down(
    data: str, requested: str | None, runs: str, problem: str | None
) -> None:
    """The claim records the version that opened the data last."""
    labels = {
        "app": "shop-queue",
        "app.kubernetes.io/name": "rabbitmq",
        "app.kubernetes.io/version": data,
    }
    spec = {"resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": "rabbitmq-shop-queue-0", "namespace": "eu", "uid": "c", "labels": labels}
    claim = {"metadata": metadata, "spec": spec, "status": {"phase": "Bound"}}
    (name,) = READS_CLAIMS.indexes[INDEX](claim)
    assert name in by_parent({"metadata": {"name": "shop"}})
    plan = planned(Observed(found={(CLAIM, INDEX, name): [claim]}), version=requested)
    assert container(made(plan), "shop-queue")["image"] == f"rabbitmq:{runs}"
    assert message(plan) == problem


def test_rabbitmq_knows_its_memory() -> None:
    """It would measure the machine's."""
    plan = planned(resources={"limits": {"memory": "600Mi"}})
    variables = {e["name"]: e.get("value") for e in container(made(plan), "shop-queue")["env"]}
    assert variables["SETTINGS"] == "total_memory_available_override_value = 629145600"
