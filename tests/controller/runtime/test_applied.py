"""List items that another writer replaced, found by the annotation with the last applied state."""

from typing import Any

import pytest

from controller.runtime.applied import APPLIED, annotation_of, is_replaced
from kube.resource import JsonObject


def pods(*containers: str, **fields: Any) -> JsonObject:
    """An object with these containers."""
    return {"spec": {"containers": [{"name": each, **fields} for each in containers]}}


def stored(object: JsonObject, applied: JsonObject | str) -> JsonObject:
    """The stored object after `applied` was applied."""
    value = applied if isinstance(applied, str) else annotation_of(applied)
    return {**object, "metadata": {"annotations": {APPLIED: value}}}


@pytest.mark.parametrize(
    ("applied", "there", "desired", "replaced"),
    [
        pytest.param(pods("a"), pods("b"), pods("a"), True, id="renamed"),
        pytest.param(pods("a"), pods("b"), pods("a", "c"), True, id="renamed before a new plan"),
        pytest.param(pods("a"), pods("b"), pods("c"), True, id="renamed, and by the plan too"),
        pytest.param(pods("a"), pods("a"), pods("c"), False, id="renamed by the plan"),
        pytest.param(pods("a"), pods("a", "b"), pods("a"), False, id="added"),
        pytest.param(
            pods("a"), pods("a", "b"), pods("a", "c"), False, id="added before a new plan"
        ),
        pytest.param(pods("a", "b"), pods("a"), pods("a", "b"), False, id="removed"),
        pytest.param(pods("a", "b"), pods("a", "c"), pods("a"), True, id="one of two"),
        pytest.param("", pods("b"), pods("a"), True, id="no annotation"),
        pytest.param("mine", pods("a", "b"), pods("a"), False, id="another annotation"),
        pytest.param(
            pods("a", env=[{"name": "X"}]),
            pods("a", env=[{"name": "Y"}]),
            pods("a", env=[{"name": "X"}]),
            True,
            id="in an item",
        ),
    ],
)
def test_a_replaced_list_item_is_detected(
    applied: JsonObject | str, there: JsonObject, desired: JsonObject, replaced: bool
) -> None:
    """An applied item that was replaced is detected; an added item, or a rename in the plan, is not."""
    assert is_replaced(stored(there, applied), desired) == replaced


def test_each_list_is_compared_separately() -> None:
    """A variable that another writer removed does not cause the removal of a container that another writer added."""
    applied = pods("a", env=[{"name": "X"}])
    there = {"spec": {"containers": [{"name": "a", "env": []}, {"name": "sidecar"}]}}
    assert not is_replaced(stored(there, applied), applied)
