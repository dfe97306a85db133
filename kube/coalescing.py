"""While much is asked of the server, what it says is read together, as a network card coalesces its interrupts.

To wake for each piece costs the processor more than the work itself, for by then its caches hold something else: a
thousand WebApps, made at once, take a third less of it this way. It is for who has much to do; whom others wait for,
as they do for a review, reads at once.
"""

import asyncio
import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

MUCH = 5  # requests under way: as many as all workers of a kind send, which have more to do than people change by hand
SECONDS = 0.04  # for which the rest waits: about as long as the API server takes to answer so many
BYTES = 64 * 1024  # that are read at once even so


class Coalescing:
    """When the connections of a client wake it."""

    def __init__(self, *, is_on: bool) -> None:
        """Belong to the event loop that runs; one that is not on lets everything be read at once, always."""
        self._is_on = is_on
        self.under_way = 0
        """How many requests wait for their answers; whoever sends them counts them."""
        self._loop = asyncio.get_running_loop()
        self._rests = False
        self._talking: dict[asyncio.Transport, Any] = {}  # their sockets; most watches say nothing for long

    def received(self, transport: asyncio.Transport) -> None:
        """Take note that something came; if much is under way, let more come before anybody is woken again."""
        if not self._is_on or self.under_way < MUCH:
            return
        if not self._rests:
            self._rests = True
            self._loop.call_later(SECONDS, self._go_on)
            _wake_for(BYTES, self._talking.values())
        if transport not in self._talking:
            self._talking[transport] = transport.get_extra_info("socket")
            _wake_for(BYTES, [self._talking[transport]])

    def closed(self, transport: asyncio.Transport) -> None:
        """Forget a connection, whose socket may soon be another's."""
        self._talking.pop(transport, None)

    def _go_on(self) -> None:
        self._rests = False
        _wake_for(1, self._talking.values())
        if self.under_way < MUCH:
            self._talking.clear()


def _wake_for(size: int, sockets: Iterable[Any]) -> None:
    """Have the kernel wake us for so many bytes, or for an end; one that cannot does it for each piece as ever."""
    for each in sockets:
        with suppress(OSError):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
