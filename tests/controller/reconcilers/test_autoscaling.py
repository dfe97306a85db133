"""Autoscaling of WebApps and of the workloads of stacks: plans, writes and conditions."""

from datetime import UTC, datetime
from typing import Any

import pytest

from config.api.webapp import WebApp
from controller.reconcilers import planned_kinds
from controller.reconcilers.appstack import APP_STACK
from controller.reconcilers.resources import AUTOSCALER, DEPLOYMENT
from controller.reconcilers.webapp import WEBAPP
from controller.runtime.plan import Observed, Plan, Problem
from controller.runtime.status import of_type
from gatewright.testing import ApiServer, reconcile
from kube.resource import JsonObject
from tests.controller.reconcilers.platforms import deleted, made, stack

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BOUNDS: JsonObject = {"min": 2, "max": 6, "targetCPU": 70}
ACTIVE = {"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound"}
ABLE = {"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale"}
NO_API = (
    "the HPA was unable to compute the replica count: failed to get cpu utilization: unable to get "
    "metrics for resource cpu: unable to fetch metrics from resource metrics API: the server could "
    "not find the requested resource (get pods.metrics.k8s.io)"
)


def webapp(**spec: Any) -> JsonObject:
    """A stored WebApp of three replicas."""
    metadata = {"name": "shop", "namespace": "default", "uid": "1", "generation": 1}
    about = {"apiVersion": "example.com/v1", "kind": "WebApp", "metadata": metadata}
    return {**about, "spec": {"replicas": 3, "image": "nginx:1.21", **spec}}


def planned(*children: JsonObject, **spec: Any) -> Plan:
    """The plan of a WebApp."""
    return WEBAPP.plan(WebApp.model_validate(webapp(**spec)), Observed(children), NOW)


def deployment(replicas: int, ready: int) -> JsonObject:
    """Its Deployment, as its controller reports it."""
    status = {"readyReplicas": ready, "updatedReplicas": replicas, "observedGeneration": 1}
    metadata = {"name": "shop", "uid": "d", "generation": 1}
    about = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
    return {**about, "spec": {"replicas": replicas}, "status": status}


def autoscaler(*conditions: JsonObject) -> JsonObject:
    """Its autoscaler, with the conditions of its status."""
    about = {"apiVersion": AUTOSCALER.api_version, "kind": AUTOSCALER.kind}
    metadata = {"name": "shop", "uid": "h"}
    return {**about, "metadata": metadata, "status": {"conditions": list(conditions)}}


def condition(plan: Plan, type: str = "Autoscaled") -> tuple[str, str, str] | None:
    """Status, reason and message of a condition."""
    found = of_type(type, plan.status.to_api().get("conditions") or ())
    return None if found is None else (found["status"], found["reason"], found["message"])


def test_the_autoscaler_scales_the_deployment_between_the_bounds() -> None:
    """It has the name and the labels of the Deployment, which has no number of replicas."""
    objects = made(planned(autoscaling=BOUNDS))
    scaler, scaled = objects[AUTOSCALER.kind, "shop"], objects["Deployment", "shop"]
    assert scaler["metadata"] == scaled["metadata"]
    assert "replicas" not in scaled["spec"]
    assert scaler["spec"] == {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"},
        "minReplicas": 2,
        "maxReplicas": 6,
        "metrics": [
            {
                "type": "Resource",
                "resource": {
                    "name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 70},
                },
            }
        ],
    }


@pytest.mark.parametrize(
    ("environment", "least"), [("development", 1), ("staging", 2), ("production", 3)]
)
def test_the_least_number_is_that_of_the_environment(environment: str, least: int) -> None:
    """The same YAML has production's number in production; `max` limits it."""
    for most in (10, 1):
        workload = {"image": "shop:1", "autoscaling": {"max": most}}
        object = stack(environment=environment, backend=workload)
        plan = APP_STACK.plan(APP_STACK.type.model_validate(object), Observed(), NOW)
        scaler = made(plan)[AUTOSCALER.kind, "shop-backend"]
        assert scaler["spec"]["minReplicas"] == min(least, most)


def test_replicas_of_a_webapp_are_the_default_of_the_least_number() -> None:
    """`replicas` is required, so it has a meaning beside `autoscaling` too."""
    objects = made(planned(autoscaling={"max": 5}))
    assert objects[AUTOSCALER.kind, "shop"]["spec"]["minReplicas"] == 3


def test_readiness_follows_the_number_that_the_autoscaler_set() -> None:
    """Five of five pods are Running although the least is two; four of five are not."""
    phases = [
        planned(deployment(5, ready), autoscaling=BOUNDS).status.to_api()["phase"]
        for ready in (5, 4)
    ]
    assert phases == ["Running", "Deploying"]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([], ("False", "Progressing", "waiting for the first measurement of the pods' cpu usage")),
        (
            [ABLE, ACTIVE],
            ("True", "ScalingActive", "2 to 6 replicas at 70% of the requested cpu"),
        ),
        (
            [
                ABLE,
                {
                    **ACTIVE,
                    "status": "False",
                    "reason": "FailedGetResourceMetric",
                    "message": NO_API,
                },
            ],
            (
                "False",
                "FailedGetResourceMetric",
                "the cluster serves no metrics.k8s.io, so cpu usage is unknown and the number of "
                "replicas stays. Install metrics-server",
            ),
        ),
        (
            [
                ABLE,
                {
                    **ACTIVE,
                    "status": "False",
                    "reason": "FailedGetResourceMetric",
                    "message": "failed to get cpu utilization: missing request for cpu in container webapp of Pod x",
                },
            ],
            (
                "False",
                "FailedGetResourceMetric",
                "the container has no cpu request to compare its usage with. Set resources.requests",
            ),
        ),
        (
            [
                {
                    **ACTIVE,
                    "status": "False",
                    "reason": "ScalingDisabled",
                    "message": "it has 0 replicas",
                }
            ],
            ("False", "ScalingDisabled", "it has 0 replicas"),
        ),
    ],
)
def test_the_condition_says_whether_it_can_decide(
    conditions: list[JsonObject], expected: tuple[str, str, str]
) -> None:
    """A cluster without metrics is reported with its remedy, and pods that run stay Ready."""
    plan = planned(deployment(2, 2), autoscaler(*conditions), autoscaling=BOUNDS)
    assert condition(plan) == expected
    assert plan.status.to_api()["phase"] == "Running"


@pytest.mark.parametrize(
    ("bounds", "problem"),
    [
        ({}, Problem("spec.autoscaling.max: must be set")),
        (
            {"min": 5, "max": 2},
            Problem("spec.autoscaling.min: 5; it must not exceed max: 2. Lower it", "Invalid"),
        ),
    ],
)
def test_bounds_that_are_none_leave_the_number_as_it_is(
    bounds: JsonObject, problem: Problem
) -> None:
    """Without a webhook, the status names the field, and the Deployment keeps its number."""
    plan = planned(deployment(4, 4), autoscaling=bounds)
    assert plan.problem == problem
    assert "replicas" not in made(plan)["Deployment", "shop"]["spec"]


def test_without_autoscaling_the_autoscaler_is_deleted() -> None:
    """The number is that of the spec again; a WebApp that never had one has no such write."""
    plan = planned(deployment(5, 5), autoscaler())
    assert deleted(plan) == ["horizontalpodautoscalers/shop"]
    assert made(plan)["Deployment", "shop"]["spec"]["replicas"] == 3
    assert condition(plan) is None
    assert deleted(planned(deployment(3, 3))) == []


async def test_the_number_of_the_autoscaler_is_not_fought() -> None:
    """It is created with the least number; later writes repeat what the autoscaler set, and it is no drift."""
    async with ApiServer(*planned_kinds()) as server:
        server.create(WEBAPP.resource, webapp())

        async def replicas() -> int:
            await reconcile(WEBAPP, server, "shop", "default")
            found = server.get(DEPLOYMENT, "shop", "default")
            assert found is not None
            return int(found["spec"]["replicas"])

        def change(**spec: Any) -> None:
            server.change(WEBAPP.resource, "shop", {"spec": spec}, "default")

        assert await replicas() == 3
        change(autoscaling=BOUNDS)
        assert await replicas() == 3
        server.change(DEPLOYMENT, "shop", {"spec": {"replicas": 6}}, "default")
        server.requests.clear()
        assert await replicas() == 6
        assert [each for each in server.writes if "deployments" in each] == []
        change(image="nginx:1.22")
        assert await replicas() == 6
        change(autoscaling=None)
        assert await replicas() == 3
        assert server.get(AUTOSCALER, "shop", "default") is None
    async with ApiServer(*planned_kinds()) as server:
        server.create(WEBAPP.resource, webapp(autoscaling=BOUNDS))
        assert await replicas() == 2
