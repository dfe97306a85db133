"""Effective resources of containers and pods, as the API server and the scheduler compute them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.webhook.asking import ask
from webhook.policies._resources import of_containers, of_pod


def container(name="app", *, sidecar=False, limits=None, requests=None):
    """Return a container with resources."""
    restart = {"restartPolicy": "Always"} if sidecar else {}
    return {"name": name, "resources": {"limits": limits, "requests": requests}, **restart}


def texts(amounts):
    """Return amounts as text."""
    return {name: str(amount) for name, amount in amounts.items()}


def pod(resources=None, *, init=(), containers=()):
    """Return the limits and requests of a pod; None if it has no pod-level ones."""
    spec = {"resources": resources, "initContainers": list(init), "containers": list(containers)}
    found = of_pod(ask({"kind": "Pod", "spec": spec}))
    return None if found is None else (texts(found.limits), texts(found.requests))


LIMITS = {"limits": {"cpu": "4", "memory": "4Gi"}}


@pytest.mark.parametrize(
    ("init", "containers", "requests"),
    [
        pytest.param([], [], {"cpu": "4", "memory": "4Gi"}, id="no requests: the limits"),
        pytest.param(
            [],
            [container(requests={"cpu": "100m"}), container("b", limits={"cpu": "1"})],
            {"cpu": "1100m", "memory": "4Gi"},
            id="containers add up; a limit is a request",
        ),
        pytest.param(
            [
                container(requests={"cpu": "3"}),
                container("b", requests={"cpu": "2", "memory": "1Gi"}),
            ],
            [container("c", requests={"cpu": "1", "memory": "1Mi"})],
            {"cpu": "3", "memory": "1Gi"},
            id="init containers run one after the other",
        ),
        pytest.param(
            [
                container("early", sidecar=True, requests={"cpu": "1"}),
                container(requests={"cpu": "2"}),
            ],
            [container("c", requests={"cpu": "1"})],
            {"cpu": "3", "memory": "4Gi"},
            id="a sidecar adds to later init containers",
        ),
        pytest.param(
            [
                container(requests={"cpu": "2"}),
                container("late", sidecar=True, requests={"cpu": "1"}),
            ],
            [container("c", requests={"cpu": "1500m"})],
            {"cpu": "2500m", "memory": "4Gi"},
            id="a sidecar adds to all containers",
        ),
        pytest.param(
            [],
            [container(requests={"example.com/foo": "1", "hugepages-2Mi": "2Mi"})],
            {"cpu": "4", "memory": "4Gi"},
            id="a pod has no other resources",
        ),
    ],
)
def test_requests_of_a_pod(init, containers, requests):
    """A missing request is the sum of the containers', or else the limit."""
    assert pod(LIMITS, init=init, containers=containers) == (LIMITS["limits"], requests)


def test_pod_level_resources_override_containers():
    """Set values stay; without limits nothing is filled in."""
    requested = [container(requests={"cpu": "1"})]
    assert pod(LIMITS | {"requests": {"cpu": "2"}}, containers=requested)[1] == {
        "cpu": "2",
        "memory": "4Gi",
    }
    assert pod({"requests": {"cpu": "2"}}, containers=requested) == ({}, {"cpu": "2"})
    assert pod(None, containers=requested) is None
    assert of_pod(ask({"kind": "WebApp", "spec": {}}, "WebApp")) is None


MILLIS = st.integers(0, 4000)
CONTAINERS = st.lists(st.tuples(st.booleans(), MILLIS), max_size=5)


@given(CONTAINERS, st.lists(MILLIS, min_size=1, max_size=4))
def test_a_pods_request_is_its_peak(init, containers):
    """It is the maximum over the pod's start-up."""
    moments, running = [], 0
    for sidecar, cpu in init:
        moments.append(running + cpu)
        running += cpu if sidecar else 0
    moments.append(running + sum(containers))
    spec = {
        "resources": {"limits": {"cpu": "100"}},
        "initContainers": [
            container(sidecar=sidecar, requests={"cpu": f"{cpu}m"}) for sidecar, cpu in init
        ],
        "containers": [container(requests={"cpu": f"{cpu}m"}) for cpu in containers],
    }
    assert of_pod(ask({"kind": "Pod", "spec": spec})).requests["cpu"].millis == max(moments)


def completed(limit_ranges, **resources):
    """Return limits and requests of a container in a namespace with LimitRanges."""
    request = ask(
        {"kind": "Pod", "spec": {"containers": [container(**resources)]}},
        looked_up={"limit_ranges": limit_ranges},
    )
    (found,) = of_containers(request, limit_ranges=True)
    return texts(found.limits), texts(found.requests)


def limit_range(**item):
    """Return a LimitRange for containers."""
    return {
        "spec": {"limits": [{"type": "Pod", "max": {"cpu": "99"}}, {"type": "Container", **item}]}
    }


@pytest.mark.parametrize(
    ("limit_ranges", "resources", "limits", "requests"),
    [
        pytest.param([], {}, {}, {}, id="no LimitRange"),
        pytest.param([{"spec": None}], {}, {}, {}, id="an empty one"),
        pytest.param(
            [limit_range(max={"cpu": "2"})],
            {},
            {"cpu": "2"},
            {"cpu": "2"},
            id="the maximum is a default",
        ),
        pytest.param(
            [limit_range(min={"cpu": "2"})],
            {},
            {},
            {"cpu": "2"},
            id="the minimum is a default request",
        ),
        pytest.param(
            [
                limit_range(
                    max={"cpu": "4"},
                    default={"cpu": "2"},
                    defaultRequest={"cpu": "1"},
                    min={"cpu": "1m"},
                )
            ],
            {},
            {"cpu": "2"},
            {"cpu": "1"},
            id="the default overrides the maximum",
        ),
        pytest.param(
            [limit_range(default={"cpu": "2"}, defaultRequest={"cpu": "1"})],
            {"limits": {"cpu": "3"}},
            {"cpu": "3"},
            {"cpu": "3"},
            id="a limit is the request, with any default",
        ),
        pytest.param(
            [limit_range(default={"cpu": "2"})],
            {"requests": {"cpu": "1"}},
            {"cpu": "2"},
            {"cpu": "1"},
            id="a request stays",
        ),
        pytest.param(
            [limit_range(default={"cpu": "2"}), limit_range(default={"cpu": "3", "memory": "1Gi"})],
            {},
            {"cpu": "2", "memory": "1Gi"},
            {"cpu": "2", "memory": "1Gi"},
            id="the first of two LimitRanges wins",
        ),
    ],
)
def test_limit_ranges_fill_in_missing_values(limit_ranges, resources, limits, requests):
    """The order is that of the API server and its LimitRanger."""
    assert completed(limit_ranges, **resources) == (limits, requests)
