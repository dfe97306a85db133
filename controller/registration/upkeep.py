"""When to write what refers the API server to the webhook: once it answers, and then whenever somebody changed it."""

import logging
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from controller.registration.configurations import Address
from controller.registration.probe import ProbeError, probe

NOW = timedelta()
PROBE_AGAIN = timedelta(seconds=5)
REPAIR_INTERVAL = timedelta(seconds=30)  # between two writes of the same content: another writer is not fought

LOG = logging.getLogger("gatewright.registration")


@dataclass(frozen=True, slots=True)
class Written:
    """The last write of a part: when (monotonic seconds), what was wanted, and what the API server stored."""

    at: float
    wanted: Any
    stored: Any


class Upkeep:
    """The state of each part that is kept up: the webhooks of a configuration, the conversion of a CRD."""

    def __init__(self, purpose: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`purpose` is what a log line says is not done as long as no webhook answers, such as `not registered`."""
        self._purpose = purpose
        self._clock = clock
        self._written: dict[Hashable, Written] = {}
        self._problem = ""

    async def due(self, key: Hashable, found: Any, wanted: Any, *, probe_at: Address | None) -> timedelta | None:
        """Return when to write what is wanted: NOW, or after how long to ask again; None where it is in place.

        `probe_at` is given where nothing refers to the webhook yet: it must answer there first.
        """
        if found == wanted:
            return None
        if (before := self._written.get(key)) is not None and before.wanted == wanted:
            if found == before.stored:  # the API server's own form of it
                return None
            left = timedelta(seconds=before.at - self._clock()) + REPAIR_INTERVAL
            if left > NOW:
                return left
        if probe_at is not None and not await self._answers(probe_at):
            return PROBE_AGAIN
        return NOW

    def wrote(self, key: Hashable, wanted: Any, stored: Any) -> None:
        """Take note of a write."""
        self._written[key] = Written(self._clock(), wanted, stored)

    async def _answers(self, address: Address) -> bool:
        try:
            await probe(address.url, address.ca_bundle or b"")
        except ProbeError as error:
            if str(error) != self._problem:
                LOG.warning("%s yet: no webhook answers", self._purpose, extra={"fields": {"error": str(error)}})
            self._problem = str(error)
            return False
        self._problem = ""
        return True
