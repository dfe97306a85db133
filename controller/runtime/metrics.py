"""What all controllers count, under the names that controller-runtime has for it."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from controller.runtime.followed import AllFollowed, Followed
from controller.runtime.phases import Resources
from controller.runtime.queue import WorkQueue
from controller.runtime.requests import Requests
from controller.runtime.result import Outcome, Request


class Metrics:
    """The collectors of all controllers of a process."""

    def __init__(self, registry: CollectorRegistry, *, per_object: bool = True) -> None:
        """`per_object`: a kind's metrics carry the labels `namespace` and `name`; large clusters turn that off."""
        self.registry = registry
        self.per_object = per_object
        reconciles, queue = "controller_runtime_", "workqueue_"
        self._errors = Counter(f"{reconciles}reconcile_errors", "Failures.", ["controller"], registry=registry)
        self._terminal = Counter(
            f"{reconciles}terminal_reconcile_errors", "Permanent failures.", ["controller"], registry=registry
        )
        self._timeouts = Counter(
            f"{reconciles}reconcile_timeouts", "Reconciles that took too long.", ["controller"], registry=registry
        )
        self._panics = Counter(
            f"{reconciles}reconcile_panics",
            "Reconciles that met a mistake in the code.",
            ["controller"],
            registry=registry,
        )
        self._workers = Gauge(f"{reconciles}max_concurrent_reconciles", "Workers.", ["controller"], registry=registry)
        self._retries = Counter(f"{queue}retries", "Retries after a failure.", ["name"], registry=registry)
        self._requests = Requests()
        registry.register(self._requests)
        self._leading = Gauge("leader_election_master_status", "1 while leading.", ["name"], registry=registry)
        self.resources = Resources()
        registry.register(self.resources)
        self._counters: dict[str, Counter] = {}
        self._followed = AllFollowed()
        registry.register(self._followed)

    def follow(self, name: str, queue: WorkQueue[Request], workers: int) -> None:
        """Count for a controller from now on."""
        for counter in (self._errors, self._terminal, self._timeouts, self._panics):
            counter.labels(name)
        self._workers.labels(name).set(workers)
        self._followed.by_name[name] = Followed(queue)

    def reconciled(self, name: str, outcome: Outcome, seconds: float, waited: float) -> None:
        """Count a reconcile of a controller."""
        self._followed.by_name[name].reconciled(outcome, seconds, waited)
        if outcome in ("error", "terminal_error"):
            self._errors.labels(name).inc()
            (self._retries if outcome == "error" else self._terminal).labels(name).inc()

    def failed(self, name: str, *, in_time: bool, expected: bool) -> None:
        """Count a failure of a sort of its own: too late, or an exception that nobody meant to raise."""
        if not in_time:
            self._timeouts.labels(name).inc()
        elif not expected:
            self._panics.labels(name).inc()

    def requests_to(self, host: str) -> Callable[[str, int, float], None]:
        """Return what a client calls after each answer."""
        answers = self._requests.answers

        def on_response(method: str, code: int, seconds: float) -> None:
            del seconds
            answers[code, method, host] += 1

        return on_response

    def counter(self, name: str, about: str) -> Counter:
        """Return the counter of this name, which several kinds may share."""
        if name not in self._counters:
            self._counters[name] = Counter(name, about, registry=self.registry)
        return self._counters[name]

    def leading(self, name: str, *, leads: bool) -> None:
        """Say whether this process leads."""
        self._leading.labels(name).set(leads)
