"""The engine in force, rebuilt when policies change; an invalid set changes nothing."""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Never

from kube.watched import WatchedObject
from webhook.engine import Engine
from webhook.policy_sets.policy_set import PolicySet
from webhook.server.cluster_policies import PolicyObjects
from webhook.server.metrics import WebhookMetrics
from webhook.server.policy_files import digest_of

POLL_SECONDS = 5.0  # between two looks at the files
START_SECONDS = 0.1  # between looks whether the policy objects of the cluster are known

log = logging.getLogger("gatewright.webhook.policies")


class Policies:
    """Policies from files and a ConfigMap, and cluster objects, which replace those by name.

    `engine` is None until everything is known, and never None again. Each review is judged by one
    engine, so by one set.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        read: Callable[[], PolicySet],
        build: Callable[[PolicySet], Engine],
        objects: PolicyObjects,
        metrics: WebhookMetrics,
        config_map: WatchedObject | None = None,
    ) -> None:
        """Take the files at `paths`, and a ConfigMap, both of which `read` reads.

        What is wrong with them `read` and `build` raise as ValueError or OSError: here, if nothing
        has to be awaited.
        """
        self.engine: Engine | None = None
        self.version = ""
        """Identifies the set in force: with the same version, processes judge alike."""
        self.objects = objects
        self._config_map = config_map
        self._read = read
        self._build = build
        self._metrics = metrics
        self._paths = tuple(paths)
        self._written: PolicySet | None = None
        self._seen = b""  # the digest of what was there the last time
        self._digest = b""  # of what was read last without an error
        self._is_stale = True  # whether the engine is of other policies
        self._problem: str | None = "not loaded yet"
        self._unreadable: str | None = None  # what is wrong with the newest files or ConfigMap
        self._changed = asyncio.Event()
        objects.subscribe(self._changed.set)
        if config_map is None:
            self._read_if_changed()
        else:
            config_map.subscribe(self._changed.set)

    def refresh(self) -> None:
        """Build an engine if the policies changed.

        Log what is wrong with them and keep what is in force.
        """
        self._changed.clear()  # what changes from now on is for the next time
        if self.engine is None and (unknown := self._unknown()) is not None:
            self._problem = unknown
            return
        try:
            self._read_if_changed()
            if self.objects.compile(self._with_written):
                self._is_stale = True
            if not self._is_stale:
                return
            self._is_stale = False
            engine = self._with_written(self.objects.in_force())
        except (ValueError, OSError) as error:
            self._report(str(error))
        else:
            self._put_in_force(engine)

    async def follow(
        self, on_change: Callable[[], None] = lambda: None, seconds: float = POLL_SECONDS
    ) -> Never:
        """Refresh beside the event loop: at once for objects, now and then for files.

        `on_change` is called after each new engine.
        """
        while True:
            before = self.engine
            await asyncio.to_thread(self.refresh)
            if self.engine is not before:
                on_change()
            pause = seconds if self.engine else min(seconds, START_SECONDS)
            with suppress(TimeoutError):
                # not wait_for, which in Python 3.11 can swallow a cancellation
                async with asyncio.timeout(pause):
                    await self._changed.wait()

    def ready(self) -> str | None:
        """Say why nothing can be judged, or None."""
        return self._problem if self.engine is None else None

    def in_force(self) -> str:
        """Say which set is in force, and what is wrong with a newer one."""
        count = 0 if self.engine is None else len(self.engine.policies)
        refused = f"; a newer set cannot be used: {self._problem}" if self._problem else ""
        return f"{count} in force, version {self.version}{refused}"

    def _unknown(self) -> str | None:
        """Name what has to be read before there is a set."""
        if self._config_map is not None and not self._config_map.is_known:
            return f"{self._config_map}: {self._config_map.absence()}"
        return None if self.objects.are_known else "policy objects of the cluster: not read yet"

    def _read_if_changed(self) -> None:
        before, self._seen = self._seen, digest_of(self._paths, self._config_map)
        if self._seen == before and self._written is not None:
            return
        try:
            self._written = self._read()
        except (ValueError, OSError) as error:
            self._unreadable = str(error)
            raise
        self._unreadable = None
        self._digest = self._seen
        self._is_stale = True

    def _put_in_force(self, engine: Engine) -> None:
        objects = "".join(self.objects.versions()).encode()
        self.version = hashlib.sha256(self._digest + objects).hexdigest()[:12]
        self._problem = self._unreadable
        self._metrics.policies.set(len(engine.policies))
        self._metrics.policy_set.clear()
        self._metrics.policy_set.labels(self.version).set(1)
        before = self.engine.policies if self.engine else ()
        self.engine = engine
        gone = {each.title for each in before} - {each.title for each in engine.policies}
        self._metrics.forget(gone)
        fields = {"policies": len(engine.policies), "version": self.version}
        log.info("policies in force", extra={"fields": fields})

    def _report(self, problem: str) -> None:
        if self.engine is None and problem == self._problem:
            return  # asked again soon: one line is enough
        self._problem = problem
        kept = "" if self.engine is None else ", those before stay in force"
        log.error("the policies cannot be used%s: %s", kept, problem)
        self._metrics.policy_reload_errors.inc()

    def _with_written(self, objects: PolicySet) -> Engine:
        assert self._written is not None
        return self._build(self._written.under(objects))
