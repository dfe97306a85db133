"""A TCP proxy between a client and a server, in which tests can cut or freeze connections."""

import asyncio
import contextlib
from typing import Self


class Proxy:
    """Listens on loopback and passes bytes on: `async with Proxy("127.0.0.1", 6443) as proxy: … proxy.port`."""

    def __init__(self, host: str, port: int) -> None:
        self.port = 0
        self.accepted = 0
        """The number of connections opened so far."""
        self._target = (host, port)
        self._links: set[Link] = set()
        self._silent = False
        self._refusing = False
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exception: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await self._server.wait_closed()

    def cut(self) -> None:
        """Break all connections; new ones work."""
        for link in list(self._links):
            link.cut()

    def silence(self) -> None:
        """Stop forwarding on the open connections without closing them; new ones work."""
        for link in self._links:
            link.passing.clear()

    def partition(self, *, silent: bool = True) -> None:
        """Stop forwarding on old and new connections until `heal`; or close and refuse them."""
        self._silent, self._refusing = silent, not silent
        self.silence() if silent else self.cut()

    def heal(self) -> None:
        """Forward everything that is waiting, and resume."""
        self._silent = self._refusing = False
        for link in self._links:
            link.passing.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        if self._refusing:
            writer.transport.abort()
            return
        try:
            other_reader, other_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        link = Link(writer, other_writer, passing=not self._silent)
        self._links.add(link)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(link.pass_on(reader, other_writer))
                group.create_task(link.pass_on(other_reader, writer))
        finally:
            self._links.discard(link)
            link.cut()


class Link:
    """One connection through the proxy."""

    def __init__(self, *writers: asyncio.StreamWriter, passing: bool) -> None:
        self._writers = writers
        self.passing = asyncio.Event()
        if passing:
            self.passing.set()

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward bytes from one side until either side closes."""
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                await self.passing.wait()
                writer.write(data)
                await writer.drain()
        self.cut()

    def cut(self) -> None:
        """Close both sides."""
        self.passing.set()
        for writer in self._writers:
            writer.transport.abort()
