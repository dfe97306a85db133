"""Fair room for reads of registries: namespaces share it, and dry runs get less."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple


class Asker(NamedTuple):
    """On whose behalf an image is read: a namespace's requests, or its dry runs."""

    namespace: str
    dry_run: bool = False

    def share_of(self, size: int) -> int:
        """Return how much of a room it may hold: a half, or an eighth for dry runs."""
        return max(1, size // (8 if self.dry_run else 2))


NOBODY = None  # no namespace, but the process itself, such as an audit: no share limits it


class Claim:
    """One read, with all who ask for it; it counts for the one whose turn comes first."""

    def __init__(self, asker: Asker | None) -> None:
        """Begin with one asker."""
        self.askers = {asker}
        self.has_begun = False

    @property
    def is_urgent(self) -> bool:
        """Whether not only dry runs wait for it."""
        return any(each is None or not each.dry_run for each in self.askers)


class Room:
    """A number of reads at a time. Who holds the fewest is next, dry runs after all others."""

    def __init__(self, size: int) -> None:
        """Take the number of reads."""
        self._size = size
        self._held = Counter[Asker | None]()
        self._waiting: dict[Claim, asyncio.Future[Asker | None]] = {}

    @asynccontextmanager
    async def of(self, claim: Claim) -> AsyncIterator[None]:
        """Wait for the claim's turn, and hold room while the context lasts."""
        turn: asyncio.Future[Asker | None] = asyncio.get_running_loop().create_future()
        self._waiting[claim] = turn
        self._admit()
        try:
            await turn
            yield
        finally:
            self._waiting.pop(claim, None)
            if turn.done() and not turn.cancelled():
                self._held[turn.result()] -= 1
            self._admit()

    def _admit(self) -> None:
        while self._held.total() < self._size:
            fitting = [
                (not claim.is_urgent, self._held[asker], number, asker, claim)
                for number, (claim, turn) in enumerate(self._waiting.items())
                for asker in claim.askers
                if not turn.done()  # cancelled
                if asker is None or self._held[asker] < asker.share_of(self._size)
            ]
            if not fitting:
                return
            *_, asker, claim = min(fitting, key=lambda each: each[:3])
            self._held[asker] += 1
            self._waiting.pop(claim).set_result(asker)
