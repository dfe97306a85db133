"""Idle pods: their logs, and their usage compared with the chart's requests and limits."""

import json
import time
from datetime import UTC, datetime

import pytest

from tests.node.conftest import Figures
from tests.node.installation import CONTROLLER, Installation
from tests.node.load import Load
from tests.node.parts import NODE
from tests.node.release import NAMESPACE

pytestmark = [pytest.mark.node, pytest.mark.long]

# A watch that is silent is noticed after 80 s.
REST = 100.0
LOADED = 20.0
MEBIBYTE = 1 << 20
# Of the kinds of Prometheus's operator, which this cluster has not.
OPTIONAL = "is its CustomResourceDefinition installed?"


def test_idle_kinds_log_no_warnings(installed: Installation) -> None:
    """There is no warning in a healthy cluster, however long a kind has no events."""
    time.sleep(max(0.0, REST - age(installed)))
    logged = installed.logged(CONTROLLER, "warning")
    warnings = [f"{each['time']} {each['message']}: {each.get('error')}" for each in logged]
    assert [each for each in warnings if OPTIONAL not in each] == []


def test_pods_stay_within_their_requests(installed: Installation, figure: Figures) -> None:
    """Memory and CPU at rest and under load are below what the chart requests."""
    rest = usage(installed)
    began = time.monotonic()
    with Load(installed) as load:
        time.sleep(LOADED)
    seconds = time.monotonic() - began
    loaded = usage(installed)
    figure(str(load))
    for name in sorted(loaded):
        cores = (loaded[name][0] - rest[name][0]) / seconds
        memory = loaded[name][1] / MEBIBYTE
        figure(f"{name}: {memory:.0f} MiB of 128 requested and 512 allowed, {cores:.3f} cores")
        assert memory < 128


def age(installation: Installation) -> float:
    """Return for how long the youngest of the controller's pods has run."""
    started = [pod["status"]["startTime"] for pod in installation.pods(CONTROLLER)]
    return (datetime.now(UTC) - datetime.fromisoformat(max(started))).total_seconds()


def usage(installation: Installation) -> dict[str, tuple[float, int]]:
    """Return the seconds of CPU and the memory of each container, as the kubelet counts them."""
    path = f"/api/v1/nodes/{NODE}/proxy/stats/summary"
    pods = json.loads(installation.cluster.api.request("GET", path)[1])["pods"]
    return {
        pod["podRef"]["name"]: (
            pod["containers"][0]["cpu"]["usageCoreNanoSeconds"] / 1e9,
            pod["containers"][0]["memory"]["workingSetBytes"],
        )
        for pod in pods
        if pod["podRef"]["namespace"] == NAMESPACE
    }
