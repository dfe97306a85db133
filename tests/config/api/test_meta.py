from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from config.api.meta import Condition, ObjectMeta
from config.api.webapp import WebApp

CONDITION = {
    "type": "Ready",
    "status": "True",
    "lastTransitionTime": "2026-01-02T03:04:05Z",
    "reason": "Available",
    "message": "",
}


def test_unknown_keys_are_ignored():
    """Older code reads objects that newer code has written."""
    assert ObjectMeta.model_validate({"name": "shop", "fromTheFuture": True}).name == "shop"


def test_null_is_absent():
    """A null means the same as no key at all, as it does to the API server."""
    assert ObjectMeta.model_validate(
        {"name": "shop", "labels": None, "generation": None}
    ) == ObjectMeta(name="shop")


@pytest.mark.parametrize(
    "wrong", [{"generation": "1"}, {"name": 7}, {"labels": ["a"]}, {"labels": {"a": 1}}]
)
def test_wrong_types_are_refused(wrong):
    """Values are not coerced: types that the API server rejects are rejected."""
    with pytest.raises(ValidationError):
        ObjectMeta.model_validate(wrong)


def test_times_are_written_as_the_api_server_writes_them():
    """A time keeps its second and its zone, and has no fraction."""
    condition = Condition.model_validate(CONDITION)
    assert condition.last_transition_time == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert condition.to_api() == CONDITION


def test_an_object_answers_for_its_metadata():
    """Frequently used metadata has a property."""
    metadata = {"name": "shop", "namespace": "web", "uid": "1-2-3", "generation": 4}
    webapp = WebApp.model_validate(
        {"metadata": metadata, "spec": {"replicas": 1, "image": "shop:1"}}
    )
    assert (webapp.name, webapp.namespace, webapp.uid, webapp.generation) == (
        "shop",
        "web",
        "1-2-3",
        4,
    )
