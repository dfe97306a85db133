"""Whether a child still is what was asked for."""

from typing import Any

import pytest

from controller.runtime.drift import covers, drifted, fingerprint


@pytest.mark.parametrize(
    ("stored", "desired"),
    [
        ({"a": 1, "b": 2}, {"a": 1}),
        ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "1000m"}}),
        ({"limits": {"memory": "1Gi"}}, {"limits": {"memory": "1024Mi"}}),
        ({"limits": {"cpu": "2"}}, {"limits": {"cpu": 2}}),
        ([{"name": "sidecar"}, {"name": "webapp", "image": "a", "x": 1}], [{"name": "webapp", "image": "a"}]),
        ([{"containerPort": 80, "protocol": "TCP"}], [{"containerPort": 80}]),
        ({}, {"labels": {}, "args": [], "other": None}),
        ({"matchLabels": {"app": "a"}}, {"matchLabels": {"app": "a"}}),
    ],
)
def test_what_the_server_adds_or_rewrites_is_no_drift(stored: Any, desired: Any) -> None:
    """Defaults, quantities in another form and other people's fields are no reason to write."""
    desired = {key: value for key, value in desired.items() if value} if stored == {} else desired
    assert covers(stored, desired)


@pytest.mark.parametrize(
    ("stored", "desired"),
    [
        ({"a": 2}, {"a": 1}),
        ({}, {"a": 1}),
        (None, {"a": 1}),
        ({"requests": {"cpu": "2"}}, {"requests": {"cpu": "1000m"}}),
        ({"value": "1"}, {"value": "1000m"}),
        ([{"name": "webapp", "image": "b"}], [{"name": "webapp", "image": "a"}]),
        ([{"containerPort": 80}, {"containerPort": 81}], [{"containerPort": 80}]),
        (["a", "b"], ["a"]),
        ({"selector": {"app": "a", "hand": "made"}}, {"selector": {"app": "a"}}),
    ],
)
def test_what_somebody_changed_is_drift(stored: Any, desired: Any) -> None:
    """A changed value, a missing one, and a key more in a map that has one owner are put back."""
    assert not covers(stored, desired)


def test_the_fingerprint_leaves_out_what_controllers_write() -> None:
    """A Deployment's status, generation and revision annotation do not count."""
    desired = {"metadata": {"name": "a", "labels": {"app": "a"}}, "spec": {"replicas": 1}}
    before = {**desired, "metadata": {**desired["metadata"], "resourceVersion": "1", "annotations": {}}}
    after = {
        **before,
        "metadata": {**before["metadata"], "resourceVersion": "2", "annotations": {"revision": "1"}},
        "status": {"replicas": 1},
    }
    assert fingerprint(before, desired) == fingerprint(after, desired)


@pytest.mark.parametrize("change", [{"spec": {"replicas": 1, "paused": True}}, {"metadata": {"name": "a"}}])
def test_the_fingerprint_shows_every_change_people_make(change: dict[str, Any]) -> None:
    """A field added beside ours and a label taken away both show."""
    desired = {"metadata": {"name": "a", "labels": {"app": "a"}}, "spec": {"replicas": 1}}
    assert fingerprint(desired, desired) != fingerprint({**desired, **change}, desired)


@pytest.mark.parametrize(
    ("stored", "desired", "path"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, ""),
        ({"spec": {"replicas": 5, "paused": True}}, {"spec": {"replicas": 3}}, "spec.replicas"),
        ({"ports": [{"port": 80}, {"port": 1}]}, {"ports": [{"port": 80}, {"port": 2}]}, "ports[1].port"),
        ({"selector": {"app": "a", "hand": "made"}}, {"selector": {"app": "a"}}, "selector"),
        ({"limits": {"cpu": "1", "memory": "2Gi"}}, {"limits": {"cpu": "1", "memory": "1Gi"}}, "limits.memory"),
        ({"args": ["a", "b"]}, {"args": ["a"]}, "args"),
        ({}, {"data": {"a": "b"}}, "data"),
    ],
)
def test_drift_is_named_by_its_field(stored: Any, desired: Any, path: str) -> None:
    """The first field that is not as desired, as people write it."""
    assert drifted(stored, desired) == path
