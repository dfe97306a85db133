"""Measures whether policies are enforced: by dry runs that the API server must deny.

Once a minute, the leader creates an object that policies deny, as a server-side dry run, through
the API server like anybody else. Nothing is stored. A denial proves the whole path of each policy
that it lists: the registration, the network, the certificates, the webhook's process and the policy
in it. Any other answer is reported: an admitted object as not enforced, everything else as unknown.
With more requests than MAX_REQUESTS, policies take turns, and what `enforcement_ways` concludes
from those that are measured holds for the others meanwhile.
"""

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from prometheus_client import CollectorRegistry

from controller.registration.enforcement_answers import (
    FORBIDDEN,
    NAMESPACE_GONE,
    NO_REQUEST,
    UNANSWERED,
    DryRunAnswer,
    Enforcement,
    judge,
    judge_unread,
    read_answer,
)
from controller.registration.enforcement_requests import DryRun, DryRuns, FindDenied, Way
from controller.registration.enforcement_ways import Ways
from controller.registration.metrics import EnforcementMetrics
from controller.runtime.controller import Controller
from controller.runtime.metrics import ControllerMetrics
from controller.runtime.types import ReconcileRequest, Result
from kube.client import Client
from kube.errors import ApiError
from webhook.engine import BoundPolicy, Engine
from webhook.engine.match import Labels

REQUEST = ReconcileRequest(None, "enforcement")
INTERVAL = timedelta(minutes=1)
MAX_REQUESTS = 240
"""Dry runs in an INTERVAL; with more, the least recently measured policies are next.

Those that confirm a problem are sent beside them, and are at most as many.
"""
SETTLE = 30.0  # seconds in which a change of policies reaches every webhook
AGAIN = timedelta(seconds=10)  # after an answer that is not the denial, before it counts
MAX_AT_ONCE = int(MAX_REQUESTS * AGAIN / INTERVAL)
MIN_PAUSE = timedelta(seconds=1)  # after a pass whose answers took longer than AGAIN
MAX_DERIVING = 0.2  # seconds to find requests in one pass; the next one is after AGAIN
MAX_GONE = 6  # passes in a row in which the namespaces of all requests of a policy are gone
FIELD_MANAGER = "gatewright-enforcement"

LOG = logging.getLogger("gatewright.enforcement")

DryRunAnswers = Mapping[DryRun, DryRunAnswer]


@dataclass(slots=True)
class _Measured:
    """What is known of one policy in force."""

    policy: BoundPolicy
    since: float
    """The monotonic time since which this version is in force here."""
    at: float = -math.inf
    """When the last dry runs were sent."""
    known: Enforcement | None = None
    """The last confirmed result of its own dry runs."""
    reported: Enforcement | None = None
    """This result, or what is concluded meanwhile."""
    suspected: bool = False
    """Whether the last answer was not the denial, and is not confirmed."""
    dry_runs: Sequence[DryRun] | None = None
    """None before they are found."""
    ways: frozenset[Way] = frozenset()
    """Those of the last dry runs."""
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
        self._dry_runs = DryRuns(
            client, find, selectors, excluded_namespaces=excluded_namespaces, clock=clock
        )
        self._ways = Ways()
        self._on_changed = on_changed
        self._clock = clock
        self._metrics = EnforcementMetrics(registry)
        self._measured: dict[str, _Measured] = {}
        self._seen: Engine | None = None

    def controller(self, metrics: ControllerMetrics) -> Controller:
        """Return the controller that runs it."""
        controller = Controller("enforcement", reconcile=self.reconcile, metrics=metrics, workers=1)
        controller.add(REQUEST)
        return controller

    def of(self, title: str) -> Enforcement | None:
        """Return the result for a policy; None before the first one, and if it denies nothing."""
        measured = self._measured.get(title)
        return None if measured is None else measured.reported

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
        chosen = await self._choose(engine)
        if engine is self._engine():
            # At once: a webhook that does not answer delays only its own policies.
            dry_runs = list({run for measured in chosen for run in measured.dry_runs or ()})
            answers = await asyncio.gather(*map(self._send, dry_runs))
            if engine is self._engine():  # else the policies changed meanwhile
                self._take(chosen, dict(zip(dry_runs, answers, strict=True)), began)
        took = timedelta(seconds=self._clock() - began)
        return Result(max(AGAIN - took, MIN_PAUSE))

    def _follow(self, engine: Engine) -> None:
        """Take over the results of the policies that are unchanged in a new engine."""
        before, self._seen = self._measured, engine
        self._measured = {}
        self._dry_runs.clear()
        for policy in engine.policies:
            if "Deny" not in policy.actions or policy.policy.validate is None:
                continue
            if policy.policy.always:
                continue
            old = before.get(policy.title)
            if old is not None and old.policy == policy:
                old.dry_runs = None  # other policies may deny the same request now
                self._measured[policy.title] = old
            else:
                last, reported = (None, None) if old is None else (old.known, old.reported)
                self._measured[policy.title] = _Measured(
                    policy, self._clock(), known=last, reported=reported
                )
        self._ways.keep(self._measured.keys())
        for title in before.keys() - self._measured.keys():
            if before[title].reported is not None:
                self._metrics.forget(title)

    async def _choose(self, engine: Engine) -> list[_Measured]:
        """Return the policies to measure in this pass, with their dry runs."""
        chosen, sent = list[_Measured](), set[DryRun]()
        room, room_to_confirm, deriving = MAX_AT_ONCE, MAX_AT_ONCE, 0.0
        for measured in self._due():
            if measured.dry_runs is None:
                if deriving > MAX_DERIVING:
                    continue
                derived_from = self._clock()
                await self._derive(measured, engine)
                deriving += self._clock() - derived_from
            new = [dry_run for dry_run in measured.dry_runs or () if dry_run not in sent]
            if measured.suspected:
                if len(new) > room_to_confirm:
                    continue
                room_to_confirm -= len(new)
            else:
                if len(new) > room:
                    break
                room -= len(new)
            sent.update(new)
            chosen.append(measured)
        return chosen

    def _due(self) -> Iterator[_Measured]:
        """Yield the policies to measure now.

        First those to confirm, then some of each way, then the least recently measured.
        """
        now, interval = self._clock(), INTERVAL.total_seconds()
        waiting = [
            measured
            for measured in self._measured.values()
            if now - measured.since >= SETTLE
            and (measured.suspected or now - measured.at >= interval)
        ]
        waiting.sort(key=lambda each: (not each.suspected, each.at))
        asked, later = Counter[Way](), list[_Measured]()
        for measured in waiting:
            wanted = any(
                asked[way] < self._ways.count_wanted(way, now, interval) for way in measured.ways
            )
            if not (measured.suspected or wanted):
                later.append(measured)
                continue
            asked.update(measured.ways)
            yield measured
        yield from later

    async def _derive(self, measured: _Measured, engine: Engine) -> None:
        """Find the dry runs of a policy."""
        left_out = frozenset(measured.left_out)
        try:
            measured.dry_runs = await self._dry_runs.find(measured.policy, engine, left_out)
        except ApiError as error:
            measured.dry_runs, measured.obstacle = [], judge_unread(error)
        measured.ways = frozenset(dry_run.way for dry_run in measured.dry_runs)

    async def _send(self, dry_run: DryRun) -> DryRunAnswer:
        """Send a dry run, and return the answer."""
        request, failed = dry_run.request, None
        try:
            await self._client.create(
                request.resource, request.object, field_manager=FIELD_MANAGER, dry_run=True
            )
        except ApiError as error:
            failed = error
        answer = read_answer(failed)
        self._metrics.requests.labels(answer.status).inc()
        return answer

    def _take(self, chosen: Sequence[_Measured], answers: DryRunAnswers, sent: float) -> None:
        """Note the answers for all policies of which each dry run was sent."""
        reached = [
            measured
            for measured in self._measured.values()
            if measured.dry_runs
            and sent - measured.since >= SETTLE
            and all(dry_run in answers for dry_run in measured.dry_runs)
        ]
        alone = [measured for measured in chosen if not measured.dry_runs]
        failures: dict[str, Mapping[DryRun, Enforcement]] = {}
        for measured in [*reached, *alone]:
            confirmed = self._take_own(measured, answers, sent)
            if confirmed:
                failures[measured.policy.title] = confirmed
        denied = {dry_run: answer.is_own_denial for dry_run, answer in answers.items()}
        changed = self._ways.note(sent, denied, failures)
        others = [each for each in self._measured.values() if not changed.isdisjoint(each.ways)]
        for measured in {each.policy.title: each for each in [*reached, *alone, *others]}.values():
            self._report(measured)

    def _take_own(
        self, measured: _Measured, answers: DryRunAnswers, sent: float
    ) -> Mapping[DryRun, Enforcement]:
        """Keep the worst result of a policy; return the results that confirm a problem.

        A result other than a denial counts once it is confirmed: webhooks may be changing. A
        namespace that was deleted since it was listed tells nothing about the policy.
        """
        own = {
            dry_run: judge(measured.policy, answers[dry_run], dry_run.request)
            for dry_run in measured.dry_runs or ()
        }
        for dry_run, result in own.items():
            if result.reason == FORBIDDEN:
                resource = dry_run.request.resource
                measured.left_out.add((resource.group, resource.kind))
                measured.obstacle = result
        gone = {dry_run for dry_run, result in own.items() if result.reason == NAMESPACE_GONE}
        results = {dry_run: result for dry_run, result in own.items() if dry_run not in gone}
        self._dry_runs.forget(gone)
        if gone:
            measured.dry_runs = None
            measured.gone = 0 if results else measured.gone + 1
            if 0 < measured.gone <= MAX_GONE:
                return {}
            results = results or own
        else:
            measured.gone = 0
        new = _worst(results.values()) or measured.obstacle or NO_REQUEST
        if not results or new.status == "True":  # kinds that were forbidden are tried again
            measured.left_out, measured.obstacle = set(), None
        measured.at = sent
        status = measured.known.status if measured.known is not None else None
        measured.suspected = new.status not in ("True", status) and not measured.suspected
        if new.status != "True" and new.reason not in UNANSWERED:
            # Found again: a namespace may have other labels.
            self._dry_runs.forget(
                dry_run for dry_run in results if results[dry_run].status != "True"
            )
            measured.dry_runs = None
        if measured.suspected:
            return {}
        measured.known = new
        return {dry_run: result for dry_run, result in results.items() if result.status != "True"}

    def _report(self, measured: _Measured) -> None:
        """Report the result of a policy, or what is concluded for it, if it is another one."""
        new = measured.known
        if new is not None and new.status == "True":
            new = self._ways.conclude(measured.ways) or new
        if new is None or new == measured.reported:
            return
        status = measured.reported.status if measured.reported is not None else None
        measured.reported = new
        title = measured.policy.title
        self._metrics.set(title, new.status)
        if new.status != status and (status is not None or new.status != "True"):
            level = logging.INFO if new.status == "True" else logging.WARNING
            LOG.log(level, "policy %s: enforced: %s: %s", title, new.status, new.message)
        self._on_changed({title})


def _worst(results: Iterable[Enforcement]) -> Enforcement | None:
    """Return a result that is not enforced, else one that is unknown, else any; None if none."""
    order = ("False", "Unknown", "True")
    return min(results, key=lambda each: order.index(each.status), default=None)
