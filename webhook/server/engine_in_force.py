"""The engine in force, rebuilt when policies change; an invalid set changes nothing."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Never

from webhook.engine import Engine
from webhook.policy_sets.policy_set import PolicySet
from webhook.server.cluster_policies import PolicyObjects
from webhook.server.content import POLL_SECONDS, Content
from webhook.server.metrics import WebhookMetrics

START_SECONDS = 0.1  # between looks whether the policy objects of the cluster are known

log = logging.getLogger("gatewright.webhook.policies")


class Policies:
    """Policies from files, and from objects of the cluster, which replace those by name.

    `engine` is None until the objects are known, and never None again.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        read: Callable[[], PolicySet],
        build: Callable[[PolicySet], Engine],
        objects: PolicyObjects,
        metrics: WebhookMetrics,
    ) -> None:
        """Read the files at `paths`.

        What is wrong with them `read` and `build` raise as ValueError or OSError.
        """
        self.engine: Engine | None = None
        self.objects = objects
        self._read = read
        self._build = build
        self._metrics = metrics
        self._content = Content(paths)
        self._content.changed()
        self._files = read()
        self._is_stale = True  # whether the engine is of other policies
        self._problem = "not loaded yet"
        self._changed = asyncio.Event()
        objects.subscribe(self._changed.set)

    def refresh(self) -> None:
        """Build an engine if the policies changed.

        Log what is wrong with them and keep what is in force.
        """
        self._changed.clear()  # what changes from now on is for the next time
        if not self.objects.are_known:
            self._problem = "policy objects of the cluster: not read yet"
            return
        try:
            if self._content.changed():
                self._files, self._is_stale = self._read(), True
            if self.objects.compile(self._with_files):
                self._is_stale = True
            if not self._is_stale:
                return
            self._is_stale = False
            self.engine = self._with_files(self.objects.in_force())
        except (ValueError, OSError) as error:
            self._problem = str(error)
            self._metrics.policy_reload_errors.inc()
            kept = "" if self.engine is None else ", those before stay in force"
            log.error("the policies cannot be used%s: %s", kept, error)
        else:
            self._metrics.policies.set(len(self.engine.policies))
            log.info("policies in force", extra={"fields": {"policies": len(self.engine.policies)}})

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
            with suppress(TimeoutError):
                await asyncio.wait_for(
                    self._changed.wait(), seconds if self.engine else min(seconds, START_SECONDS)
                )

    def ready(self) -> str | None:
        """Say why nothing can be judged, or None."""
        return self._problem if self.engine is None else None

    def _with_files(self, objects: PolicySet) -> Engine:
        return self._build(self._files.under(objects))
