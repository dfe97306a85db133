"""While much is asked of the server, what it says is read together, as a network card coalesces its interrupts.

To wake for each piece costs the processor more than the work itself, for by then its caches hold something else: a
thousand WebApps, made at once, take a third less of it this way. It is for who has much to do; whom others wait for,
as they do for a review, reads at once.
"""

import asyncio
import socket
from contextlib import suppress
from typing import Any

MUCH = 16  # requests under way: more than what people change by hand makes necessary
SECONDS = 0.06  # for which the rest waits: less than the API server takes to answer so many
BYTES = 64 * 1024  # that are read at once even so


class Coalescing:
    """When the connections of a client wake it."""

    def __init__(self, *, is_on: bool) -> None:
        """Belong to the event loop that runs; one that is not on lets everything be read at once, always."""
        self._is_on = is_on
        self.under_way = 0
        """How many requests wait for their answers; whoever sends them counts them."""
        self._loop = asyncio.get_running_loop()
        self._sockets: dict[asyncio.Transport, Any] = {}
        self._rests = False

    def join(self, transport: asyncio.Transport) -> None:
        """Let a connection have the rhythm of the others."""
        self._sockets[transport] = transport.get_extra_info("socket")

    def leave(self, transport: asyncio.Transport) -> None:
        """Forget a connection that is closed."""
        self._sockets.pop(transport, None)

    def received(self) -> None:
        """Take note that something came; if much is under way, let more come before anybody is woken again."""
        if self._is_on and self.under_way >= MUCH and not self._rests:
            self._rests = True
            self._wake_for(BYTES)
            self._loop.call_later(SECONDS, self._go_on)

    def _go_on(self) -> None:
        self._rests = False
        self._wake_for(1)

    def _wake_for(self, size: int) -> None:
        """Have the kernel wake us for so many bytes, or for an end; one that cannot does it for each piece as ever."""
        for each in self._sockets.values():
            if each.fileno() >= 0:
                with suppress(OSError):
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
