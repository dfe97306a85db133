"""Metrics of the controllers."""

from datetime import UTC, datetime
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from controller.runtime.kind import Counts
from controller.runtime.metrics import ControllerMetrics, KindMetrics
from controller.runtime.observed import Owner
from controller.runtime.status import condition
from controller.runtime.types import ReconcileOutcome, ReconcileRequest
from controller.runtime.workqueue import WorkQueue
from kube.resource import Resource

SHOP = ReconcileRequest("production", "shop")
NOW = datetime(2026, 1, 1, 0, 0, 20, tzinfo=UTC)


def shop(name: str = "shop", **status: Any) -> Owner:
    """A WebApp that was created twenty seconds ago."""
    metadata = {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
    resource = Resource("example.com", "v1", "webapps", "WebApp")
    return Owner(SHOP._replace(name=name), resource, {"metadata": metadata, "status": status})


@pytest.fixture
def metrics() -> ControllerMetrics:
    """The collectors of a process."""
    return ControllerMetrics(CollectorRegistry())


def value(metrics: ControllerMetrics, name: str, /, **labels: str) -> float | None:
    """The value of a sample; None if there is none."""
    return metrics.registry.get_sample_value(name, labels)


@pytest.mark.parametrize(
    ("outcome", "result"),
    [
        ("success", "success"),
        ("requeue_after", "requeue"),
        ("error", "error"),
        ("panic", "error"),
        ("terminal_error", "error"),
    ],
)
def test_a_kind_counts_its_reconciles_by_result(
    metrics: ControllerMetrics, outcome: ReconcileOutcome, result: str
) -> None:
    """Each object has separate series, with the kind's prefix."""
    KindMetrics("WebApp", metrics).count_reconcile(SHOP, outcome, 0.3)
    labels = {"namespace": "production", "name": "shop"}
    assert value(metrics, "webapp_reconcile_total", result=result, **labels) == 1
    assert value(metrics, "webapp_reconcile_duration_seconds_bucket", le="0.5", **labels) == 1
    assert value(metrics, "webapp_reconcile_duration_seconds_bucket", le="0.1", **labels) == 0


def test_errors_are_counted_by_type(metrics: ControllerMetrics) -> None:
    """Both types exist from the start, so that queries can compute a rate."""
    kind = KindMetrics("WebApp", metrics)
    assert value(metrics, "webapp_errors_total", type="permanent") == 0
    kind.count_reconcile(SHOP, "error", 0)
    kind.count_reconcile(SHOP, "terminal_error", 0)
    assert value(metrics, "webapp_errors_total", type="retryable") == 1
    assert value(metrics, "webapp_errors_total", type="permanent") == 1


def test_the_series_of_a_deleted_object_go(metrics: ControllerMetrics) -> None:
    """No series has its name, even if it was never counted."""
    kind = KindMetrics("WebApp", metrics)
    kind.count_reconcile(SHOP, "success", 0)
    kind.status(shop(), {"phase": "Running"}, NOW)
    kind.forget(SHOP)
    kind.forget(ReconcileRequest("production", "other"))
    assert 'name="shop"' not in generate_latest(metrics.registry).decode()
    assert value(metrics, "gatewright_resources", kind="WebApp", phase="Running") == 0


def test_changes_of_a_status_are_counted_under_a_name_of_their_own(
    metrics: ControllerMetrics,
) -> None:
    """The kinds that share the name share the counter; a first value counts, the same again does not."""
    counts = Counts("gatewright_config_changes", "checksum", "Changes.")
    one, other = (KindMetrics(kind, metrics, counts) for kind in ("AppConfig", "VoteConfig"))
    assert value(metrics, "gatewright_config_changes_total") == 0
    one.status(shop(), {"checksum": "a"}, NOW)
    one.status(shop(checksum="a"), {"checksum": "a", "lastUpdated": "now"}, NOW)
    one.status(shop(checksum="a"), {}, NOW)
    other.status(shop(checksum="a"), {"checksum": "b"}, NOW)
    assert value(metrics, "gatewright_config_changes_total") == 2


def test_metrics_can_be_kept_without_object_names() -> None:
    """The setting removes the labels of single objects."""
    metrics = ControllerMetrics(CollectorRegistry(), per_object=False)
    kind = KindMetrics("WebApp", metrics)
    kind.count_reconcile(SHOP, "success", 0)
    kind.forget(SHOP)
    assert value(metrics, "webapp_reconcile_total", result="success") == 1


def test_creation_is_timed_once_by_namespace(metrics: ControllerMetrics) -> None:
    """The time is counted in the published buckets; an object that was ready before is not counted."""
    kind, ready = (
        KindMetrics("WebApp", metrics),
        {"conditions": [condition("Ready", True, "AllReady")]},
    )
    for owner in (shop(), shop(**ready), shop("other", **ready)):
        kind.status(owner, ready, NOW)
    assert (
        value(metrics, "webapp_creation_duration_seconds_bucket", namespace="production", le="30.0")
        == 1
    )
    assert (
        value(metrics, "webapp_creation_duration_seconds_bucket", namespace="production", le="10.0")
        == 0
    )


def test_objects_are_counted_by_phase(metrics: ControllerMetrics) -> None:
    """An object is in one phase at a time; without a phase it counts as Ready or NotReady."""
    kind = KindMetrics("WebApp", metrics)
    for status in ({"phase": "Deploying"}, {}, {"phase": "Running"}):
        kind.status(shop(), status, NOW)
    assert value(metrics, "gatewright_resources", kind="WebApp", phase="Deploying") == 0
    assert value(metrics, "gatewright_resources", kind="WebApp", phase="NotReady") == 0
    assert value(metrics, "gatewright_resources", kind="WebApp", phase="Running") == 1


def test_the_names_of_controller_runtime(metrics: ControllerMetrics) -> None:
    """Dashboards for other controllers show ours."""
    queue: WorkQueue[ReconcileRequest] = WorkQueue(
        clock=lambda: 0.0, on_add=metrics.adds.labels("webapp").inc
    )
    metrics.follow("webapp", queue, 5)
    assert (
        value(metrics, "controller_runtime_reconcile_total", controller="webapp", result="requeue")
        == 0
    )
    queue.add(SHOP)
    queue.add(SHOP)
    assert value(metrics, "workqueue_depth", name="webapp") == 1
    queue.take()
    assert value(metrics, "controller_runtime_active_workers", controller="webapp") == 1
    metrics.count_reconcile("webapp", "terminal_error", 0.2, 0.1)
    metrics.count_response("127.0.0.1:6443", "GET", 200)
    metrics.leading.labels("gatewright-controller-lock").set_function(lambda: True)
    for name, labels in {
        "workqueue_adds_total": {"name": "webapp"},
        "workqueue_queue_duration_seconds_count": {"name": "webapp"},
        "workqueue_work_duration_seconds_count": {"name": "webapp"},
        "controller_runtime_reconcile_total": {"controller": "webapp", "result": "error"},
        "controller_runtime_reconcile_errors_total": {"controller": "webapp"},
        "controller_runtime_terminal_reconcile_errors_total": {"controller": "webapp"},
        "rest_client_requests_total": {"code": "200", "method": "GET", "host": "127.0.0.1:6443"},
        "leader_election_master_status": {"name": "gatewright-controller-lock"},
    }.items():
        assert value(metrics, name, **labels) == 1, name
