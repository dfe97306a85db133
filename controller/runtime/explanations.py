"""Looks up why children are not ready: reads their pods and events, seldom, only while they wait.

Nothing is watched or cached for this, so other objects of a namespace cost nothing.
"""

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from controller.runtime.events import EVENT
from controller.runtime.obstacles import (
    CLAIM,
    belongs_to,
    claims_of,
    failing_condition,
    obstacle_of_events,
    obstacle_of_pods,
    starting_pod,
    unscheduled_pod,
)
from controller.runtime.plan import Problem
from controller.runtime.types import ReconcileRequest
from kube.client import Client
from kube.errors import ApiError
from kube.resource import JsonObject, Resource

LOG = logging.getLogger("gatewright.controller")

POD = Resource("", "v1", "pods", "Pod")
FIRST_LOOK = 5.0  # seconds that a child may take to become ready before its pods are read
# Seconds between two look-ups: they double while the reason stays the same, so that objects that
# never become ready cost next to nothing, and a reason is seldom older than the wait itself.
MAX_INTERVAL = 600.0
RATE = 5  # look-ups a second of one kind's objects: a thousand that wait cost as little as a few
MAX_READ = 100  # pods of a workload, or events about one object
ChildVersion = tuple[str, int]  # the uid and the generation of a child


@dataclass(slots=True)
class _Wait:
    children: frozenset[ChildVersion]
    due: float
    interval: float = FIRST_LOOK
    problems: dict[ChildVersion, Problem] = field(default_factory=dict)


class Explanations:
    """The obstacles of the children that each object waits for."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._waits: dict[ReconcileRequest, _Wait] = {}
        self._reserved: set[int] = set()  # times of look-ups to come, in units of 1 / RATE seconds
        self._may_read = True

    async def explain(
        self, request: ReconcileRequest, children: Sequence[JsonObject]
    ) -> Mapping[str, Problem]:
        """Return the known obstacle of each child that is waited for, by its uid.

        They are looked up after `FIRST_LOOK`, and again with intervals that grow while nothing new
        is found; later if many objects wait.
        """
        if not children:
            self.forget(request)
            return {}
        now, identities = self._clock(), frozenset(map(_identity, children))
        wait = self._waits.get(request)
        if wait is None or not identities <= wait.children:
            wait = self._waits[request] = _Wait(identities, self._reserve(now + FIRST_LOOK))
        if now >= wait.due:
            last, wait.problems = wait.problems, {}
            for child in children:
                if problem := await self._look_up(child):
                    wait.problems[_identity(child)] = problem
            is_same = _reasons(wait.problems) == _reasons(last)
            wait.interval = min(2 * wait.interval, MAX_INTERVAL) if is_same else FIRST_LOOK
            wait.due = self._reserve(self._clock() + wait.interval)
        problems = ((child, wait.problems.get(_identity(child))) for child in children)
        return {child["metadata"]["uid"]: problem for child, problem in problems if problem}

    def due_in(self, request: ReconcileRequest) -> float | None:
        """Return the seconds until the next look-up for an object; None if none is needed."""
        wait = self._waits.get(request)
        return None if wait is None else max(0.0, wait.due - self._clock())

    def forget(self, request: ReconcileRequest) -> None:
        """Forget an object whose children are ready, or that was deleted."""
        self._waits.pop(request, None)

    def _reserve(self, earliest: float) -> float:
        """Return the first free time for a look-up that is not before `earliest`."""
        now = math.floor(self._clock() * RATE)
        self._reserved = {each for each in self._reserved if each >= now}
        slot = math.ceil(earliest * RATE)
        while slot in self._reserved:
            slot += 1
        self._reserved.add(slot)
        return slot / RATE

    async def _look_up(self, child: JsonObject) -> Problem | None:
        reported = failing_condition(child)
        if reported and child["kind"] == "Deployment" and reported.reason == "FailedCreate":
            return reported
        try:
            return await self._explain(child) or reported
        except ApiError as error:
            if self._may_read:  # once: a role without these rights does without explanations
                LOG.warning("Pods or events could not be read to explain a status: %s", error)
                self._may_read = False
            return reported

    async def _explain(self, child: JsonObject) -> Problem | None:
        name = f"{child['kind']} {child['metadata']['name']}"
        pods = await self._pods(child)
        if problem := obstacle_of_pods(pods):
            return await self._cause(pods, problem)
        if problem := obstacle_of_events(await self._events(child), name):
            return problem
        if pod := starting_pod(pods):
            return obstacle_of_events(await self._events(pod), f"pod {pod['metadata']['name']}")
        return None

    async def _cause(self, pods: Iterable[JsonObject], problem: Problem) -> Problem:
        """Return the problem of the claim for which a pod is not scheduled, if that is why."""
        pod = unscheduled_pod(pods)
        if pod is None or "PersistentVolumeClaim" not in problem.message:
            return problem
        for name in claims_of(pod):
            fields = f"regarding.kind={CLAIM},regarding.name={name}"
            about = await self._read(EVENT, pod["metadata"]["namespace"], fields=fields)
            if cause := obstacle_of_events(about, f"claim {name}"):
                return Problem(f"{problem.message}; {cause.message}", cause.reason)
        return problem

    async def _pods(self, workload: JsonObject) -> list[JsonObject]:
        """Return the pods of a workload, by its selector."""
        selector = (workload["spec"].get("selector") or {}).get("matchLabels") or {}
        if not selector:
            return []
        labels = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
        pods = await self._read(POD, workload["metadata"].get("namespace"), labels=labels)
        return [pod for pod in pods if belongs_to(pod, workload)]

    async def _events(self, object: JsonObject) -> list[JsonObject]:
        """Return the events about an object, by its uid."""
        metadata = object["metadata"]
        fields = f"regarding.uid={metadata['uid']}"
        return await self._read(EVENT, metadata.get("namespace"), fields=fields)

    async def _read(
        self,
        resource: Resource,
        namespace: str | None,
        *,
        labels: str | None = None,
        fields: str | None = None,
    ) -> list[JsonObject]:
        page = await self._client.page(
            resource, namespace, labels=labels, fields=fields, limit=MAX_READ
        )
        return list(page)


def _reasons(problems: Mapping[ChildVersion, Problem]) -> dict[ChildVersion, str]:
    """Return the reasons alone: messages may have the names of pods, which are new each time."""
    return {child: problem.reason for child, problem in problems.items()}


def _identity(child: JsonObject) -> ChildVersion:
    metadata = child["metadata"]
    return metadata["uid"], metadata.get("generation", 0)
