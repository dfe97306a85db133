"""The engine in force, rebuilt when policies change; an invalid set changes nothing."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Never

from webhook.engine import Engine
from webhook.server.content import POLL_SECONDS, Content
from webhook.server.metrics import Metrics

START_SECONDS = 0.1  # between looks whether what must be read first has been

log = logging.getLogger("gatewright.webhook.policies")


class Policies:
    """Policies from files and from the cluster: `engine` is None until a first set is loaded, and never None again.

    `load` reads all there is and builds an engine; what is wrong with it, it raises as ValueError or OSError.
    `waits_for` says what must be read first, or nothing.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        load: Callable[[], Engine],
        metrics: Metrics,
        *,
        waits_for: Callable[[], str | None] = lambda: None,
    ) -> None:
        self.engine: Engine | None = None
        self._load = load
        self._content = Content(paths)
        self._metrics = metrics
        self._waits_for = waits_for
        self._problem = "not loaded yet"
        self._changed = asyncio.Event()

    def refresh(self) -> None:
        """Load the policies if they changed; log what is wrong with them and keep what is in force."""
        if marked := self._changed.is_set():  # what is marked from now on is for the next time
            self._changed.clear()
        if (waiting := self._waits_for()) is not None:
            self._problem = f"{waiting}: not read yet"
            return  # the first load reads everything, whatever was marked before it
        if not self._content.changed() and not marked:
            return
        try:
            self.engine = self._load()
        except (ValueError, OSError) as error:
            self._problem = str(error)
            self._metrics.policy_reload_errors.inc()
            log.error("the policies cannot be used: %s", error)
        else:
            self._metrics.policies.set(len(self.engine.policies))
            log.info("policies in force", extra={"fields": {"policies": len(self.engine.policies)}})

    def mark_changed(self) -> None:
        """Signal a change other than of a file; the loader reloads immediately."""
        self._changed.set()

    async def follow(self, on_change: Callable[[], None] = lambda: None, seconds: float = POLL_SECONDS) -> Never:
        """Refresh beside the event loop: at once when something is marked, and now and then for the files.

        `on_change` is called after each new engine.
        """
        while True:
            before = self.engine
            await asyncio.to_thread(self.refresh)
            if self.engine is not before:
                on_change()
            try:
                async with asyncio.timeout(seconds if self.engine else min(seconds, START_SECONDS)):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def ready(self) -> str | None:
        """Say why nothing can be judged, or None."""
        return self._problem if self.engine is None else None
