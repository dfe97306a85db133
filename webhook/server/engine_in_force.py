"""The engine in force, rebuilt when policies change; an invalid set changes nothing."""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Never

from kube.resource import JsonObject, Resource
from kube.watched import WatchedObject
from webhook.engine import BoundPolicy, Engine
from webhook.engine.conflicts import refuse_conflict
from webhook.policy_sets.policy_set import (
    FailedCasesError,
    PolicySet,
    PolicySetError,
    find_replaced,
)
from webhook.server.cluster_policies import (
    CASE_FAILED,
    CLUSTER_POLICY,
    ObjectId,
    PolicyObjects,
    WhyNotInForce,
)
from webhook.server.metrics import WebhookMetrics
from webhook.server.policy_files import digest_of

POLL_SECONDS = 5.0  # between two looks at the files
START_SECONDS = 0.1  # seconds between two checks whether the cluster's policy objects are known

log = logging.getLogger("gatewright.webhook.policies")


class Policies:
    """Policies from files, ConfigMaps, and cluster objects, which replace the others by name.

    `engine` is None until everything has been read. Each review is judged by one engine, and so by
    one consistent set.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        read: Callable[[], PolicySet],
        build: Callable[[PolicySet, Engine | None], Engine],
        objects: PolicyObjects,
        metrics: WebhookMetrics,
        config_maps: Sequence[WatchedObject] = (),
        carried: Callable[[], Sequence[JsonObject]] = tuple,
    ) -> None:
        """Take the files at `paths`, and ConfigMaps, all of which `read` reads.

        `carried` returns objects that are denied, of cases that policies carry. `build` takes the
        engine before, whose indexes it uses again.

        `read` and `build` raise ValueError or OSError for errors; so does the constructor, if
        nothing has to be awaited.
        """
        self.engine: Engine | None = None
        self.version = ""
        """The version of the set in force: processes with the same version give the same
        verdicts."""
        self.changes: tuple[Sequence[BoundPolicy], Sequence[BoundPolicy]] = (), ()
        """Policies that only the engine before had, and those that only this one has."""
        self.objects = objects
        self.carried = carried
        self.config_maps = config_maps
        self._read = read
        self._build = build
        self._metrics = metrics
        self._paths = tuple(paths)
        self._written: PolicySet | None = None
        self._seen = b""  # the digest of what was there the last time
        self._digest = b""  # of the content that was read last last without an error
        self._is_stale = True  # whether the engine was built from older policies
        self._problem: str | None = "not loaded yet"
        self.refused: WhyNotInForce | None = None
        """Why the newest content of the files and the ConfigMaps is not in force."""
        self._changed = asyncio.Event()
        objects.subscribe(self._changed.set)
        if not config_maps:
            self._read_if_changed()
        for config_map in config_maps:
            config_map.subscribe(self._changed.set)

    def refresh(self) -> None:
        """Build an engine if the policies changed.

        If they are invalid, log the error and keep the engine in force.
        """
        self._changed.clear()  # later changes are for the next call
        if self.engine is None and (unknown := self._unknown()) is not None:
            self._problem = unknown
            return
        try:
            self._read_if_changed()
            if self.objects.compile(self._check):
                self._is_stale = True
            if not self._is_stale:
                return
            if self.engine is None and self.objects.changed_verdicts:
                raise FailedCasesError(self._changed_verdicts())
            self._is_stale = False
            engine = self._build(self._with_written(self.objects.in_force()), self.engine)
        except (ValueError, OSError) as error:
            self._report(str(error))
        else:
            self._put_in_force(engine)

    async def follow(
        self,
        on_change: Callable[[], None] = lambda: None,
        on_refused: Callable[[], None] = lambda: None,
        seconds: float = POLL_SECONDS,
    ) -> Never:
        """Refresh in a thread: at once for objects, periodically for files.

        `on_change` is called after each new engine, `on_refused` when `refused` has a new reason.
        """
        while True:
            before, refused = self.engine, self.refused
            await asyncio.to_thread(self.refresh)
            if self.engine is not before:
                on_change()
            if self.refused not in (None, refused):
                on_refused()
            pause = seconds if self.engine else min(seconds, START_SECONDS)
            with suppress(TimeoutError):
                # not wait_for, which in Python 3.11 can swallow a cancellation
                async with asyncio.timeout(pause):
                    await self._changed.wait()

    def ready(self) -> str | None:
        """Return why nothing can be judged, or None."""
        return self._problem if self.engine is None else None

    def in_force(self) -> str:
        """Return which set is in force, and the error of a newer one."""
        count = 0 if self.engine is None else len(self.engine.policies)
        refused = f"; a newer set cannot be used: {self._problem}" if self._problem else ""
        conflicts = "".join(f"; not in force: {each}" for each in self._conflicts().values())
        return f"{count} in force, version {self.version}{refused}{conflicts}"

    def refusal(self, resource: Resource, key: str) -> WhyNotInForce | None:
        """Return why a policy object that is valid by itself is not in force, or None."""
        if (refusal := self.objects.refusal((resource, key))) is not None:
            return refusal
        conflict = self._conflicts().get(key)
        return None if conflict is None else WhyNotInForce("Conflict", conflict)

    def problems(self) -> set[ObjectId]:
        """Return the policy objects whose newest version is not in force."""
        titles = self._conflicts()
        conflicting = {(CLUSTER_POLICY, title) for title in titles}  # no tenant's policy mutates
        return conflicting | self.objects.problems.keys()

    def _changed_verdicts(self) -> str:
        """Return the failed cases of objects that an earlier version had in force."""
        lines = map(str, self.objects.changed_verdicts.values())
        return "\n".join(["this version judges cases of policies in force differently", *lines])

    def _conflicts(self) -> dict[str, str]:
        conflicts = () if self.engine is None else self.engine.conflicts
        return {each.policy.title: each.text for each in conflicts}

    def _unknown(self) -> str | None:
        """Return what must still be read before there is a set, or None."""
        for config_map in self.config_maps:
            if not config_map.is_known:
                return f"{config_map}: {config_map.absence()}"
        return None if self.objects.are_known else "policy objects of the cluster: not read yet"

    def _read_if_changed(self) -> None:
        before, self._seen = self._seen, digest_of(self._paths, self.config_maps)
        if self._seen == before and self._written is not None:
            return
        if self._seen == before and self.refused is not None:
            raise PolicySetError(self.refused.message)  # the cases of the same content fail again
        try:
            self._written = self._read()
        except (ValueError, OSError) as error:
            reason = CASE_FAILED if isinstance(error, FailedCasesError) else "Invalid"
            self.refused = WhyNotInForce(reason, str(error))
            raise
        self.refused = None
        self._digest = self._seen
        self._is_stale = True

    def _put_in_force(self, engine: Engine) -> None:
        self.version = hashlib.sha256(self._digest + self.objects.version).hexdigest()[:12]
        self._problem = self.refused.message if self.refused is not None else None
        self._metrics.policies.set(len(engine.policies))
        self._metrics.policy_set.clear()
        self._metrics.policy_set.labels(self.version).set(1)
        if self.engine is not None:
            self.changes = before, now = engine.changes_from(self.engine)
            titles = {each.title for each in now}
            self._metrics.forget({each.title for each in before} - titles)
        self.engine = engine
        fields = {"policies": len(engine.policies), "version": self.version}
        log.info("policies in force", extra={"fields": fields})
        for conflict in engine.conflicts:
            log.error("policy %s is not in force: %s", conflict.policy.title, conflict.text)

    def _report(self, problem: str) -> None:
        if self.engine is None and problem == self._problem:
            return  # it is retried soon, so the error is logged only once
        self._problem = problem
        kept = "" if self.engine is None else ", those before stay in force"
        log.error("the policies cannot be used%s: %s", kept, problem)
        self._metrics.policy_reload_errors.inc()

    def _with_written(self, objects: PolicySet, new: BoundPolicy | None = None) -> PolicySet:
        """Return the policies of objects, with a `new` one, and others of files."""
        assert self._written is not None
        kept = tuple(
            policy
            for policy in self._written.policies
            if not self.objects.has(policy) and (new is None or policy.title != new.title)
        )
        return PolicySet(
            kept + objects.policies,
            self._written.exceptions + objects.exceptions,
            find_replaced(kept) | (objects.replaced or frozenset()),
        )

    def _check(self, policy: BoundPolicy, objects: PolicySet) -> None:
        """Raise ConflictingPoliciesError if a policy conflicts with the others in force."""
        refuse_conflict(policy, self._with_written(objects, policy).policies)
