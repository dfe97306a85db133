"""Shares: an amount divided among addresses, so that one with many connections leaves room for the others."""

from collections import Counter


class Shares:
    """An amount, such as of connections or bytes. An address has at most half of what the others leave."""

    def __init__(self, amount: int) -> None:
        self._amount = amount
        self._of_address: Counter[str] = Counter()

    def has_room(self, address: str, size: int) -> bool:
        """Return whether this much more is within the share of an address."""
        return self._of_address[address] + size <= self._amount - self.taken() - size

    def count(self, address: str, size: int) -> None:
        """Count this much more for an address, or less."""
        self._of_address[address] += size
        if not self._of_address[address]:
            del self._of_address[address]

    def taken(self) -> int:
        """Return how much all addresses have."""
        return self._of_address.total()
