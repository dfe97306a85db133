"""Fair shares: divides an amount among client addresses."""

import asyncio
from collections import Counter


class Shares:
    """An amount of something, such as connections or bytes.

    An address gets at most half of the part that others do not use.
    """

    def __init__(self, amount: int) -> None:
        self._amount = amount
        self._of_address: Counter[str] = Counter()
        self._given_back = asyncio.Event()

    def has_room(self, address: str, size: int) -> bool:
        """Return whether `size` more is within the share of an address."""
        return self._of_address[address] + size <= self._amount - self.total() - size

    async def take(self, address: str, size: int) -> None:
        """Wait until `size` more is within the share of an address, and count it."""
        while not self.has_room(address, size):
            await self._given_back.wait()
        self.count(address, size)

    def count(self, address: str, size: int) -> None:
        """Add `size`, which may be negative, to the count of an address."""
        self._of_address[address] += size
        if size < 0:
            self._given_back.set()
            self._given_back = asyncio.Event()
        if not self._of_address[address]:
            del self._of_address[address]

    async def all_given_back(self) -> None:
        """Wait until no address has anything."""
        while self.total():
            await self._given_back.wait()

    def total(self) -> int:
        """Return the total of all addresses."""
        return self._of_address.total()
