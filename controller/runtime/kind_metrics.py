"""What is counted of each kind, under its own prefix."""

from prometheus_client import Counter, Histogram

from controller.runtime.metrics import Metrics
from controller.runtime.plan import Object
from controller.runtime.planned_kind import Counts
from controller.runtime.reconcile_series import ReconcileSeries
from controller.runtime.result import Outcome, Request

CREATION_BUCKETS = (1, 5, 10, 30, 60, 120, 300)
RESULTS: dict[Outcome, str] = {
    "success": "success",
    "requeue_after": "requeue",
    "error": "error",
    "terminal_error": "error",
}


class KindMetrics:
    """What is counted of one kind, under its own prefix."""

    def __init__(self, kind: str, metrics: Metrics, counts: Counts | None = None) -> None:
        prefix = kind.lower()
        registry = metrics.registry
        names = ["namespace", "name"] if metrics.per_object else []
        self._per_object = metrics.per_object
        self._reconciles = ReconcileSeries(prefix, names)
        registry.register(self._reconciles)
        self._creation = Histogram(
            f"{prefix}_creation_duration_seconds",
            "Time from creation to first being ready.",
            ["namespace"],
            buckets=CREATION_BUCKETS,
            registry=registry,
        )
        self._errors = Counter(f"{prefix}_errors", "Failed reconciles.", ["type"], registry=registry)
        for type in ("retryable", "permanent"):
            self._errors.labels(type)
        self._phases = metrics.resources.of_kind(kind)
        self._counts = counts
        self._changes = metrics.counter(counts.name, counts.about) if counts else None

    def reconciled(self, request: Request, outcome: Outcome, seconds: float) -> None:
        """Count a reconcile."""
        self._reconciles.add(self._labels(request), RESULTS[outcome], seconds)
        if outcome in ("error", "terminal_error"):
            self._errors.labels("retryable" if outcome == "error" else "permanent").inc()

    def created(self, request: Request, seconds: float) -> None:
        """Count an object that is ready for the first time."""
        self._creation.labels(request.namespace or "").observe(seconds)

    def phase(self, request: Request, phase: str) -> None:
        """Take the phase an object is in."""
        self._phases.now(request, phase)

    def status(self, before: Object, now: Object) -> None:
        """Take a status that was written."""
        if self._counts and self._changes and now.get(self._counts.field) not in (None, before.get(self._counts.field)):
            self._changes.inc()

    def forget(self, request: Request) -> None:
        """Let the series of a deleted object go."""
        self._phases.now(request, None)
        if self._per_object:
            self._reconciles.forget(self._labels(request))

    def _labels(self, request: Request) -> tuple[str, ...]:
        return (request.namespace or "", request.name) if self._per_object else ()
