"""The plan of a WebApp: tables of (spec, observed) -> plan."""

from datetime import UTC, datetime
from typing import Any

import pytest

from config.api.webapp import WebApp
from controller.reconcilers.resources import DEPLOYMENT
from controller.reconcilers.webapp import FINALIZER, WEBAPP, by_image
from controller.runtime.plan import Apply, Observed, Plan, Problem
from controller.runtime.types import TerminalError
from gatewright.testing import ApiServer, reconcile
from kube.resource import JsonObject

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SEEN: JsonObject = {
    "observedGeneration": 2,
    "updatedReplicas": 3,
}  # as the Deployment's controller leaves it
BEHIND: JsonObject = {"observedGeneration": 1}
REPLACING: JsonObject = {"updatedReplicas": 1}
OLD_ONES: JsonObject = {"replicas": 4}  # one more than it should have, until the new ones are ready


def webapp(**spec: Any) -> WebApp:
    """A WebApp of three replicas."""
    metadata = {"name": "shop", "namespace": "production", "uid": "1"}
    return WebApp.model_validate(
        {"metadata": metadata, "spec": {"replicas": 3, "image": "nginx:1.21", **spec}}
    )


def planned(observed: Observed | None = None, **spec: Any) -> Plan:
    """Its plan."""
    return WEBAPP.plan(webapp(**spec), observed or Observed(), NOW)


def made(plan: Plan) -> list[JsonObject]:
    """The objects that a plan applies."""
    return [
        write.object for step in plan.steps for write in step.writes if isinstance(write, Apply)
    ]


def deployment(ready: int | None = None, wanted: int = 3, **more: Any) -> JsonObject:
    """Return its Deployment with this many ready pods."""
    status = {**({} if ready is None else {"readyReplicas": ready}), **more}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "shop", "generation": 2},
        "spec": {"replicas": wanted},
        "status": status,
    }


def test_a_deployment_and_a_service_of_the_same_name() -> None:
    """Both children carry the WebApp's name, namespace and label."""
    for child in made(planned()):
        assert child["metadata"] == {
            "name": "shop",
            "namespace": "production",
            "labels": {"app": "shop"},
        }


def test_the_deployment_has_the_fields_of_the_spec() -> None:
    """Replicas, image, port and the default resources, in a container named webapp."""
    spec = made(planned())[0]["spec"]
    assert spec == {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "shop"}},
        "template": {
            "metadata": {"labels": {"app": "shop"}},
            "spec": {
                "containers": [
                    {
                        "name": "webapp",
                        "image": "nginx:1.21",
                        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                        "resources": {
                            "requests": {"cpu": "100m", "memory": "128Mi"},
                            "limits": {"cpu": "500m", "memory": "512Mi"},
                        },
                    }
                ]
            },
        },
    }


def test_the_service_leads_to_the_container_port() -> None:
    """One port, the same on both sides."""
    assert made(planned(port=80))[1]["spec"] == {
        "selector": {"app": "shop"},
        "ports": [{"name": "http", "port": 80, "targetPort": 80, "protocol": "TCP"}],
    }


def test_resources_and_security_context_are_passed_on() -> None:
    """The container gets exactly the values of the spec."""
    resources = {"limits": {"cpu": "1"}}
    security = {"runAsNonRoot": True, "runAsUser": 1000}
    plan = planned(resources=resources, securityContext=security)
    container = made(plan)[0]["spec"]["template"]["spec"]["containers"][0]
    assert (container["resources"], container["securityContext"]) == (resources, security)


@pytest.mark.parametrize(
    ("children", "status"),
    [
        ([], {"phase": "Pending", "replicas": 0, "readyReplicas": 0}),
        ([deployment()], {"phase": "Deploying", "replicas": 3, "readyReplicas": 0}),
        ([deployment(2)], {"phase": "Deploying", "replicas": 3, "readyReplicas": 2}),
        ([deployment(3)], {"phase": "Running", "replicas": 3, "readyReplicas": 3}),
        ([deployment(2, wanted=2)], {"phase": "Deploying", "replicas": 2, "readyReplicas": 2}),
        ([deployment(3, **SEEN)], {"phase": "Running", "replicas": 3, "readyReplicas": 3}),
        (
            [deployment(3, **SEEN | BEHIND)],
            {"phase": "Deploying", "replicas": 3, "readyReplicas": 3},
        ),
        (
            [deployment(3, **SEEN | REPLACING)],
            {"phase": "Deploying", "replicas": 3, "readyReplicas": 3},
        ),
        (
            [deployment(3, **SEEN | OLD_ONES)],
            {"phase": "Deploying", "replicas": 3, "readyReplicas": 3},
        ),
    ],
)
def test_the_status_follows_the_deployment(children: list[JsonObject], status: JsonObject) -> None:
    """The phase is Running when the desired number of pods is ready, without pods of an old ReplicaSet."""
    plan = planned(Observed(children=children))
    told = plan.status.to_api()
    progressing = told.pop("conditions")[1]
    assert told == {**status, "selector": "app=shop"}
    is_running = status["phase"] == "Running"
    assert (progressing["type"], progressing["status"]) == ("Progressing", "True")
    assert progressing["reason"] == ("RolledOut" if is_running else "RollingOut")
    assert plan.steps[0].ready == (status["phase"] == "Running")


GOING = "3 of 3 replicas are ready, some are being replaced"


@pytest.mark.parametrize(
    ("stored", "note"),
    [
        (None, "0 of 3 replicas are ready"),
        (deployment(), "0 of 3 replicas are ready"),
        (deployment(1), "1 of 3 replicas are ready"),
        (deployment(2, wanted=2), "2 of 3 replicas are ready"),
        (deployment(1, **SEEN | REPLACING), "1 of 3 replicas are ready"),
        (deployment(3, **SEEN | REPLACING), GOING),
        (deployment(3, **SEEN | OLD_ONES), GOING),
        (
            deployment(5, **SEEN | {"updatedReplicas": 5}),
            "5 replicas are ready, and 3 are desired",
        ),
        (deployment(3, **SEEN), ""),
    ],
)
def test_the_progress_is_reported(stored: JsonObject | None, note: str) -> None:
    """The message has the numbers of the status, so it changes only with them or with the phase."""
    assert planned(Observed(children=[stored] if stored else [])).steps[0].note == note


async def test_the_numbers_cost_no_write_of_their_own(server: ApiServer) -> None:
    """A whole rollout has one status write for each change of phase, replicas and readyReplicas."""
    metadata = {"name": "shop", "namespace": "default"}
    server.create(
        WEBAPP.resource, {"metadata": metadata, "spec": {"replicas": 3, "image": "nginx:1.21"}}
    )
    await reconcile(WEBAPP, server, "shop")

    async def told(ready: int, updated: int, replicas: int) -> tuple[int, str]:
        """Return the writes after another status of the Deployment, and the condition Ready."""
        count = len(server.writes)
        status = {
            "readyReplicas": ready,
            "updatedReplicas": updated,
            "replicas": replicas,
            "observedGeneration": 9,
        }
        server.change(DEPLOYMENT, "shop", {"status": status}, "default", "status")
        await reconcile(WEBAPP, server, "shop")
        conditions = (server.get(WEBAPP.resource, "shop", "default"))["status"]["conditions"]
        return len(server.writes) - count, conditions[-1]["message"]

    waiting = "waiting for deployment: "
    assert await told(0, 3, 3) == (0, f"{waiting}0 of 3 replicas are ready")
    assert await told(1, 3, 3) == (1, f"{waiting}1 of 3 replicas are ready")
    assert await told(2, 3, 3) == (1, f"{waiting}2 of 3 replicas are ready")
    assert await told(3, 3, 3) == (1, "")
    assert await told(3, 1, 4) == (1, f"{waiting}{GOING}")
    assert await told(3, 2, 4) == (0, f"{waiting}{GOING}")
    assert await told(3, 3, 4) == (0, f"{waiting}{GOING}")
    assert await told(3, 3, 3) == (1, "")


async def test_each_child_has_a_condition(server: ApiServer) -> None:
    """Available and Progressing follow the Deployment, ServiceReady the Service; a failure is in its own."""
    metadata = {"name": "shop", "namespace": "default"}
    server.create(
        WEBAPP.resource, {"metadata": metadata, "spec": {"replicas": 1, "image": "nginx:1.21"}}
    )

    async def told(*conditions: JsonObject, ready: int = 0) -> dict[str, str]:
        """Return the statuses of the WebApp's conditions, with the Deployment's as given."""
        status = {"readyReplicas": ready, "updatedReplicas": 1, "observedGeneration": 1}
        change = {"status": {**status, "conditions": conditions}}
        server.change(DEPLOYMENT, "shop", change, "default", "status")
        await reconcile(WEBAPP, server, "shop")
        found = server.get(WEBAPP.resource, "shop", "default")["status"]["conditions"]
        assert all(each["lastTransitionTime"] for each in found)
        return {each["type"]: f"{each['status']} {each['reason']}" for each in found}

    await reconcile(WEBAPP, server, "shop")
    late = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    assert await told(late) == {
        "Available": "False MinimumReplicasUnavailable",
        "Progressing": "False ProgressDeadlineExceeded",
        "ServiceReady": "True Ready",
        "Ready": "False ProgressDeadlineExceeded",
    }
    assert await told({"type": "Available", "status": "True"}, ready=1) == {
        "Available": "True MinimumReplicasAvailable",
        "Progressing": "True RolledOut",
        "ServiceReady": "True Ready",
        "Ready": "True AllReady",
    }


@pytest.mark.parametrize(
    ("type", "status", "reason", "message"),
    [
        (
            "ReplicaFailure",
            "True",
            "FailedCreate",
            'pods "shop-1" is forbidden: exceeded quota: team',
        ),
        (
            "Progressing",
            "False",
            "ProgressDeadlineExceeded",
            'ReplicaSet "shop-1" has timed out progressing.',
        ),
    ],
)
def test_the_reason_for_missing_pods_is_reported(
    type: str, status: str, reason: str, message: str
) -> None:
    """The condition has the step's description, then the Deployment's reason and message."""
    condition = {"type": type, "status": status, "reason": reason, "message": message}
    plan = planned(Observed(children=[deployment(2, conditions=[condition])]))
    assert plan.steps[0].problem == Problem(f"failed to create deployment: {message}", reason)
    fine = {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated", "message": "…"}
    assert planned(Observed(children=[deployment(2, conditions=[fine])])).steps[0].problem is None


def test_a_paused_deployment_is_reported_only_if_it_blocks_a_rollout() -> None:
    """If old pods wait for replacement, the condition names the remedy."""
    paused = deployment(3, **SEEN | REPLACING)
    paused["spec"]["paused"] = True
    (message, reason) = (
        "Deployment shop is paused, and its pods are not replaced; kubectl rollout resume deployment/shop",
        "DeploymentPaused",
    )
    step = planned(Observed(children=[paused])).steps[0]
    assert step.problem == Problem(f"failed to create deployment: {message}", reason)
    paused["status"] |= SEEN
    step = planned(Observed(children=[paused])).steps[0]
    assert (step.ready, step.problem) == (True, None)


def test_webapps_are_found_by_image() -> None:
    """The index has the same values as the selectable field."""
    assert list(by_image({"spec": {"image": "nginx:1.21"}})) == ["nginx:1.21"]
    assert list(by_image({})) == []


async def test_s7_one_reconcile_makes_the_deployment(server: ApiServer) -> None:
    """S7: one WebApp (3 replicas, port 80), one reconcile, Deployment test-webapp with 3 replicas."""
    spec = {"replicas": 3, "image": "nginx:alpine", "port": 80}
    server.create(
        WEBAPP.resource, {"metadata": {"name": "test-webapp", "namespace": "default"}, "spec": spec}
    )
    await reconcile(WEBAPP, server, "test-webapp")
    deployment = server.get(DEPLOYMENT, "test-webapp", "default")
    assert deployment["spec"]["replicas"] == 3
    assert server.writes == [
        "apply deployments default/test-webapp",
        "apply services default/test-webapp",
        "apply webapps/status default/test-webapp",
    ]
    await reconcile(WEBAPP, server, "test-webapp")
    assert len(server.writes) == 3


async def test_the_finalizer_is_removed_and_never_added(server: ApiServer) -> None:
    """There is nothing to clean up outside of the cluster; finalizers of others stay."""
    metadata = {
        "name": "shop",
        "namespace": "default",
        "finalizers": [FINALIZER, "example.com/theirs"],
    }
    server.create(
        WEBAPP.resource, {"metadata": metadata, "spec": {"replicas": 1, "image": "nginx"}}
    )
    await reconcile(WEBAPP, server, "shop")
    stored = server.get(WEBAPP.resource, "shop", "default")
    assert stored["metadata"]["finalizers"] == ["example.com/theirs"]
    server.create(
        WEBAPP.resource,
        {"metadata": {"name": "other", "namespace": "default"}, "spec": stored["spec"]},
    )
    await reconcile(WEBAPP, server, "other")
    assert "finalizers" not in (server.get(WEBAPP.resource, "other", "default"))["metadata"]


async def test_an_impossible_spec_is_a_failed_webapp(server: ApiServer) -> None:
    """An older schema may have admitted the object: the phase is Failed, and the condition names the field."""
    server.serve(WEBAPP.resource)
    server.create(
        WEBAPP.resource,
        {"metadata": {"name": "shop", "namespace": "default"}, "spec": {"replicas": 1}},
    )
    with pytest.raises(TerminalError, match="must be set"):
        await reconcile(WEBAPP, server, "shop")
    status = (server.get(WEBAPP.resource, "shop", "default"))["status"]
    (ready,) = status.pop("conditions")
    assert (ready["status"], ready["reason"], ready["message"]) == (
        "False",
        "Incomplete",
        "spec.image: must be set",
    )
    assert status == {"phase": "Failed", "observedGeneration": 1}


@pytest.mark.parametrize("given", [{}, {"platform": "store", "team": "web", "version": "v1"}])
def test_labels_are_handed_on(given: dict[str, str]) -> None:
    """The labels are on both children and the pods, and in no selector."""
    labelled = WebApp.model_validate(
        {"metadata": {"name": "shop", "labels": given}, "spec": {"replicas": 1, "image": "nginx"}}
    )
    deployment, service = made(WEBAPP.plan(labelled, Observed(), NOW))
    labels = {"app": "shop"} | ({"platform": "store", "team": "web"} if given else {})
    assert deployment["metadata"]["labels"] == service["metadata"]["labels"] == labels
    assert deployment["spec"]["template"]["metadata"]["labels"] == labels
    assert (
        deployment["spec"]["selector"]["matchLabels"]
        == service["spec"]["selector"]
        == {"app": "shop"}
    )
