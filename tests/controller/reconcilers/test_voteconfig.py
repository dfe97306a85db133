"""The plan of a VoteConfig, and its deletion."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from config.api.voteconfig import VoteConfig
from controller.reconcilers.resources import CONFIG_MAP
from controller.reconcilers.rolling import checksum_of
from controller.reconcilers.voteconfig import FINALIZER, VOTECONFIG
from controller.runtime.plan import Apply, Observed, Plan
from gatewright.testing import ApiServer, reconcile
from kube.resource import JsonObject

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POLL = {"question": "Which?"}
OPTIONS = [{"id": "a", "label": "Cats", "description": "Purr."}, {"id": "b-2"}]


def planned(**spec: Any) -> Plan:
    """The plan of a VoteConfig."""
    object = {"metadata": {"name": "pets", "namespace": "sales", "uid": "1"}, "spec": spec}
    return VOTECONFIG.plan(VoteConfig.model_validate(object), Observed(), NOW)


def data_of(plan: Plan) -> dict[str, str]:
    """The data that a plan writes."""
    (write,) = plan.steps[0].writes
    assert isinstance(write, Apply)
    assert write.object["metadata"]["name"] == "pets-config"
    return dict(write.object["data"])


def test_the_configmap_is_what_a_vote_app_reads() -> None:
    """One JSON document, the question, and a key for each option that is a variable to envFrom."""
    data = data_of(planned(poll=POLL, options=OPTIONS))
    document = json.loads(data.pop("config.json"))
    assert data == {"question": "Which?", "OPTION_A": "Cats", "OPTION_B_2": "b-2"}
    assert document == {
        "question": "Which?",
        "options": [
            {"id": "a", "label": "Cats", "description": "Purr."},
            {"id": "b-2", "label": "b-2"},
        ],
    }


def test_the_question_is_read_where_v1alpha1_has_it() -> None:
    """The API server stores such an object while no webhook converts; `poll` wins."""
    assert data_of(planned(question="Old?", options=OPTIONS))["question"] == "Old?"
    assert data_of(planned(question="Old?", poll=POLL, options=OPTIONS))["question"] == "Which?"


@pytest.mark.parametrize(
    ("spec", "reason", "message"),
    [
        ({}, "Incomplete", "spec.poll.question, spec.options: must be set"),
        (
            {"poll": POLL, "options": [{"label": "Cats"}]},
            "Incomplete",
            "spec.options[0].id: must be set",
        ),
        (
            {"poll": POLL, "options": [{"id": "a b"}]},
            "Invalid",
            "spec.options[0].id: an id has letters, digits, '-', '_' and '.', 63 at most, and begins and ends with a "
            "letter or digit",
        ),
        (
            {"poll": POLL, "options": [{"id": "a-b"}, {"id": "A.b"}]},
            "Invalid",
            "spec.options[1].id: another option has the key OPTION_A_B too",
        ),
        (
            {"poll": POLL, "options": [{"id": "a", "label": "x" * 600_000}]},
            "Invalid",
            "spec.options: the ConfigMap would hold 1200100 bytes; the limit is 1048576",
        ),
    ],
)
def test_an_impossible_child_is_a_problem(spec: Any, reason: str, message: str) -> None:
    """Nothing is written, and the error names each field."""
    plan = planned(**spec)
    assert plan.steps == ()
    assert plan.problem is not None
    assert (plan.problem.reason, plan.problem.message) == (reason, message)


async def stored(server: ApiServer, **spec: Any) -> None:
    """Create a VoteConfig."""
    object = {"metadata": {"name": "pets", "namespace": "default"}, "spec": {"poll": POLL, **spec}}
    server.create(VOTECONFIG.resource, object)


async def current(server: ApiServer) -> JsonObject:
    """The stored VoteConfig."""
    return server.get(VOTECONFIG.resource, "pets", "default")


async def test_three_writes_make_it_and_none_follow(server: ApiServer) -> None:
    """Its finalizer, the ConfigMap and its status."""
    await stored(server, options=OPTIONS)
    await reconcile(VOTECONFIG, server, "pets")
    await reconcile(VOTECONFIG, server, "pets")
    assert server.writes == [
        "patch voteconfigs default/pets",
        "apply configmaps default/pets-config",
        "apply voteconfigs/status default/pets",
    ]
    object = await current(server)
    assert (
        object["metadata"]["finalizers"] == [FINALIZER] == ["voting.schoolofdevops.com/finalizer"]
    )
    data = (server.get(CONFIG_MAP, "pets-config", "default"))["data"]
    status = object["status"]
    assert (status["configMapName"], status["checksum"]) == ("pets-config", checksum_of(data))
    assert {each["type"]: each["status"] for each in status["conditions"]} == {
        "ConfigMapReady": "True",
        "Ready": "True",
    }


@pytest.mark.parametrize("spec", [{"options": OPTIONS}, {"options": []}, {"options": "what?"}])
async def test_the_finalizer_is_removed_in_the_first_pass(server: ApiServer, spec: Any) -> None:
    """Even for an invalid object, the finalizer is removed, and nothing else is written."""
    server.serve(VOTECONFIG.resource)
    await stored(server, **spec)
    server.change(
        VOTECONFIG.resource, "pets", {"metadata": {"finalizers": [FINALIZER, "theirs"]}}, "default"
    )
    server.delete(VOTECONFIG.resource, "pets", "default")
    server.requests.clear()
    await reconcile(VOTECONFIG, server, "pets")
    await reconcile(VOTECONFIG, server, "pets")
    assert server.writes == ["patch voteconfigs default/pets"]
    assert (await current(server))["metadata"]["finalizers"] == ["theirs"]
