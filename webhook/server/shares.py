"""Shares: an amount divided among addresses, so that each leaves room for the others."""

import asyncio
from collections import Counter


class Shares:
    """An amount, such as of connections or bytes.

    An address has at most half of what the others leave.
    """

    def __init__(self, amount: int) -> None:
        self._amount = amount
        self._of_address: Counter[str] = Counter()
        self._given_back = asyncio.Event()

    def has_room(self, address: str, size: int) -> bool:
        """Return whether this much more is within the share of an address."""
        return self._of_address[address] + size <= self._amount - self.taken() - size

    async def take(self, address: str, size: int) -> None:
        """Count this much more for an address once that is within its share."""
        while not self.has_room(address, size):
            await self._given_back.wait()
        self.count(address, size)

    def count(self, address: str, size: int) -> None:
        """Count this much more for an address, or less."""
        self._of_address[address] += size
        if size < 0:
            self._given_back.set()
            self._given_back = asyncio.Event()
        if not self._of_address[address]:
            del self._of_address[address]

    async def all_given_back(self) -> None:
        """Wait until no address has anything."""
        while self.taken():
            await self._given_back.wait()

    def taken(self) -> int:
        """Return how much all addresses have."""
        return self._of_address.total()
