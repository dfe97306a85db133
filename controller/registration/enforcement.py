"""Measures whether policies are enforced: by dry runs that the API server must deny.

Once a minute, the leader creates an object that a policy denies, as a server-side dry run, through
the API server like anybody else. Nothing is stored. A denial by the policy proves its whole path:
the registration, the network, the certificates, the webhook's process and the policy in it. Any
other answer is reported: an admitted object as not enforced, everything else as unknown.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from prometheus_client import CollectorRegistry

from controller.registration.enforcement_answers import (
    ADMITTED,
    FORBIDDEN,
    NAMESPACE_GONE,
    NO_REQUEST,
    UNANSWERED,
    Enforcement,
    ProbeRequest,
    judge_error,
    judge_unread,
)
from controller.registration.metrics import EnforcementMetrics
from controller.runtime.controller import Controller
from controller.runtime.metrics import ControllerMetrics
from controller.runtime.types import ReconcileRequest, Result
from kube.client import Client
from kube.errors import ApiError
from kube.resource import Resource
from webhook.engine import BoundPolicy, Engine
from webhook.engine.match import LabeledNamespace, Labels

REQUEST = ReconcileRequest(None, "enforcement")
INTERVAL = timedelta(minutes=1)
MAX_REQUESTS = 60
"""Dry runs in an INTERVAL; with more policies, the least recently measured are next.

Those that confirm a problem are sent beside them, and are at most as many.
"""
SETTLE = 30.0  # seconds in which a change of policies reaches every webhook
AGAIN = timedelta(seconds=10)  # after an answer that is not the denial, before it counts
MIN_PAUSE = timedelta(seconds=1)  # after a pass whose answers took longer than AGAIN
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
MAX_DERIVING = 0.2  # seconds to find requests in one pass; the next one is after AGAIN
MAX_REQUESTS_OF_POLICY = 4  # each for other webhooks
NAMESPACES_FRESH = 30.0  # seconds
MAX_GONE = 6  # passes in a row in which the namespaces of all requests of a policy are gone
FIELD_MANAGER = "gatewright-enforcement"

LOG = logging.getLogger("gatewright.enforcement")

# From a policy, the engine, namespaces with labels, and kinds (group and name) not to use.
FindDenied = Callable[
    [BoundPolicy, Engine, Sequence[LabeledNamespace], frozenset[tuple[str, str]]],
    ProbeRequest | None,
]


@dataclass(slots=True)
class _Measured:
    """What is known of one policy in force."""

    policy: BoundPolicy
    since: float
    """The monotonic time since which this version is in force here."""
    at: float = -math.inf
    """When the last dry runs were sent."""
    known: Enforcement | None = None
    suspected: bool = False
    """Whether the last answer was not the denial, and is not confirmed."""
    requests: list[ProbeRequest] | None = None
    left_out: set[tuple[str, str]] = field(default_factory=set)
    """Kinds that the controller may not create."""
    obstacle: Enforcement | None = None
    """Why no request can be found or sent."""
    gone: int = 0
    """The last passes in which the namespaces of all its requests were gone."""


class EnforcementProbe:
    """Measures the policies in force that deny, and keeps the results by title."""

    def __init__(
        self,
        client: Client,
        engine: Callable[[], Engine | None],
        find: FindDenied,
        selectors: Callable[[], Sequence[Callable[[Labels], bool]]],
        registry: CollectorRegistry,
        *,
        excluded_namespaces: Iterable[str] = (),
        on_changed: Callable[[set[str]], None] = lambda titles: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the engine in force, and what finds a request that a policy denies.

        `selectors` are those of the registered webhooks: a policy is measured in a namespace of
        each group of namespaces that the same webhooks select. `on_changed` gets the titles of
        policies whose result changed.
        """
        self._client = client
        self._engine = engine
        self._find = find
        self._selectors = selectors
        self._excluded = frozenset(excluded_namespaces)
        self._on_changed = on_changed
        self._clock = clock
        self._metrics = EnforcementMetrics(registry)
        self._measured: dict[str, _Measured] = {}
        self._seen: Engine | None = None
        self._groups: list[list[LabeledNamespace]] | None = None
        self._listed = 0.0

    def controller(self, metrics: ControllerMetrics) -> Controller:
        """Return the controller that runs it."""
        controller = Controller("enforcement", reconcile=self.reconcile, metrics=metrics, workers=1)
        controller.add(REQUEST)
        return controller

    def of(self, title: str) -> Enforcement | None:
        """Return the result for a policy; None before the first one, and if it denies nothing."""
        found = self._measured.get(title)
        return None if found is None else found.known

    def is_measured(self, title: str) -> bool:
        """Return whether a policy is in force and denies, so that there is or will be a result."""
        return self._seen is None or title in self._measured

    async def reconcile(self, _: ReconcileRequest) -> Result:
        """Measure the policies that are due, with at most MAX_REQUESTS in an INTERVAL."""
        engine = self._engine()
        if engine is None:
            return Result(AGAIN)
        if engine is not self._seen:
            self._follow(engine)
        began = self._clock()
        left, deriving = int(MAX_REQUESTS * AGAIN / INTERVAL), 0.0
        chosen = list[_Measured]()
        for measured in self._due():
            if measured.requests is None:
                if deriving > MAX_DERIVING:
                    break
                derived_from = self._clock()
                await self._derive(measured, engine)
                deriving += self._clock() - derived_from
            if not measured.suspected:
                left -= len(measured.requests or ())
            if left < 0 or engine is not self._engine():
                break
            chosen.append(measured)
        # At once: a webhook that does not answer delays only its own policies.
        await asyncio.gather(*map(self._measure, chosen))
        took = timedelta(seconds=self._clock() - began)
        return Result(max(AGAIN - took, MIN_PAUSE))

    def _follow(self, engine: Engine) -> None:
        """Take over the results of the policies that are unchanged in a new engine."""
        before, self._seen = self._measured, engine
        self._measured, self._groups = {}, None
        for policy in engine.policies:
            if "Deny" not in policy.actions or policy.policy.validate is None:
                continue
            if policy.policy.always:
                continue
            old = before.get(policy.title)
            if old is not None and old.policy == policy:
                old.requests = None  # other policies may deny the same request now
                self._measured[policy.title] = old
            else:
                known = None if old is None else old.known
                self._measured[policy.title] = _Measured(policy, self._clock(), known=known)
        for title in before.keys() - self._measured.keys():
            if before[title].known is not None:
                self._metrics.forget(title)

    def _due(self) -> list[_Measured]:
        """Return the policies to measure now, the least recently measured first."""
        now, interval = self._clock(), INTERVAL.total_seconds()
        waiting = [
            measured
            for measured in self._measured.values()
            if now - measured.since >= SETTLE
            and (measured.suspected or now - measured.at >= interval)
        ]
        return sorted(waiting, key=lambda each: (not each.suspected, each.at))

    async def _derive(self, measured: _Measured, engine: Engine) -> None:
        """Find a request for each group of namespaces that the same webhooks select."""
        if self._groups is None or self._clock() - self._listed > NAMESPACES_FRESH:
            try:
                self._groups, self._listed = await self._read_groups(), self._clock()
            except ApiError as error:
                measured.requests, measured.obstacle = [], judge_unread(error)
                return
        found = list[ProbeRequest]()
        left_out = frozenset(measured.left_out)
        for group in self._groups:
            if len(found) == MAX_REQUESTS_OF_POLICY:
                break
            request = await asyncio.to_thread(self._find, measured.policy, engine, group, left_out)
            if request is not None:
                found.append(request)
        measured.requests = found

    async def _read_groups(self) -> list[list[LabeledNamespace]]:
        """Return the namespaces that are sent to webhooks, by the webhooks that select them."""
        selectors = self._selectors()
        groups: dict[tuple[bool, ...], list[LabeledNamespace]] = {}
        async for namespace in self._client.list(NAMESPACES, metadata_only=True):
            metadata = namespace["metadata"]
            name, labels = metadata["name"], metadata.get("labels") or {}
            if name not in self._excluded and not metadata.get("deletionTimestamp"):
                key = tuple(select(labels) for select in selectors)
                groups.setdefault(key, []).append((name, labels))
        for group in groups.values():
            group.sort(key=lambda each: (each[0] != "default", each[0]))
        return list(groups.values())

    async def _measure(self, measured: _Measured) -> None:
        """Send the requests of a policy, and keep the worst result.

        A result other than a denial counts once it is confirmed: webhooks may be changing. A
        namespace that was deleted since it was listed tells nothing about the policy.
        """
        sent, requests = self._clock(), measured.requests or ()
        answers = await asyncio.gather(*(self._send(measured, each) for each in requests))
        if self._engine() is not self._seen:
            return  # the policies changed meanwhile
        results = [each for each in answers if each.reason != NAMESPACE_GONE]
        if len(results) < len(answers):
            measured.requests = self._groups = None
            measured.gone = 0 if results else measured.gone + 1
            if 0 < measured.gone <= MAX_GONE:
                return
            results = results or answers
        else:
            measured.gone = 0
        new = _worst(results) or measured.obstacle or NO_REQUEST
        if not results or new.status == "True":  # kinds that were forbidden are tried again
            measured.left_out, measured.obstacle = set(), None
        before, measured.at = measured.at, sent
        known = measured.known.status if measured.known is not None else None
        measured.suspected = new.status not in ("True", known) and not measured.suspected
        if new.status != "True" and new.reason not in UNANSWERED:
            measured.requests = None  # derived again: a namespace may have other labels
        if measured.suspected:
            return
        self._report(measured, new)
        if new.reason in UNANSWERED:
            ways = {
                _way(request)
                for request, answer in zip(requests, answers, strict=True)
                if answer.reason in UNANSWERED
            }
            self._report_same_way(ways, new, before)

    def _report_same_way(
        self, ways: Collection[tuple[Resource, str]], unanswered: Enforcement, since: float
    ) -> None:
        """Report the policies whose requests go the way of those that were not answered twice.

        The API server calls the same webhooks for them. If these hang, the policies would wait for
        a time-out each. Those that were measured after the first of the two requests are left out.
        """
        for measured in self._measured.values():
            if measured.at < since and any(_way(each) in ways for each in measured.requests or ()):
                self._report(measured, unanswered)

    def _report(self, measured: _Measured, new: Enforcement) -> None:
        """Keep a result, and report it if it is another one."""
        if new == measured.known:
            return
        known = measured.known.status if measured.known is not None else None
        measured.known = new
        title = measured.policy.title
        self._metrics.set(title, new.status)
        if new.status != known and (known is not None or new.status != "True"):
            level = logging.INFO if new.status == "True" else logging.WARNING
            LOG.log(level, "policy %s: enforced: %s: %s", title, new.status, new.message)
        self._on_changed({title})

    async def _send(self, measured: _Measured, request: ProbeRequest) -> Enforcement:
        """Send one dry run, and return what the answer means."""
        try:
            await self._client.create(
                request.resource, request.object, field_manager=FIELD_MANAGER, dry_run=True
            )
        except ApiError as error:
            found = judge_error(measured.policy, error, request)
            if found.reason == FORBIDDEN:
                measured.left_out.add((request.resource.group, request.resource.kind))
                measured.obstacle = found
        else:
            found = ADMITTED
        self._metrics.requests.labels(found.status).inc()
        return found


def _way(request: ProbeRequest) -> tuple[Resource, str]:
    """Return what decides to which webhooks the API server sends a request."""
    return request.resource, request.namespace


def _worst(results: Iterable[Enforcement]) -> Enforcement | None:
    """Return a result that is not enforced, else one that is unknown, else any; None if none."""
    order = ("False", "Unknown", "True")
    return min(results, key=lambda each: order.index(each.status), default=None)
