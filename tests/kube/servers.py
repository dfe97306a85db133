"""A server on loopback whose answers a test controls byte by byte; it records its requests."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

CLOSE = b""  # closes the connection, in place of a piece of an answer
SILENCE = b"silence"
GOOD = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n{"a": 1}'


class Server:
    """Answers each request with the next answer, piece by piece; after the last answer it closes the connection."""

    def __init__(self, answers: Iterable[Iterable[bytes]]) -> None:
        self.url = ""
        self.requests: list[tuple[int, bytes]] = []
        """The number of the connection, and the request."""
        self.asked = asyncio.Event()
        """Set by each request."""
        self.opened = 0
        self.closed = asyncio.Queue[int]()
        """The numbers of the connections that the client closed."""
        self._answers = iter(answers)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer on one connection."""
        number = self.opened
        self.opened += 1
        try:
            while request := await read(reader):
                self.requests.append((number, request))
                self.asked.set()
                for piece in next(self._answers, (CLOSE,)):
                    if piece == CLOSE:
                        return
                    if piece == SILENCE:
                        break
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
            self.closed.put_nowait(number)
        except ConnectionError:
            self.closed.put_nowait(number)
        finally:
            writer.transport.abort()


async def read(reader: asyncio.StreamReader) -> bytes:
    """Return the head and body of a request; empty at the end."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return head + await reader.readexactly(int(length or 0))


@asynccontextmanager
async def answering(
    *answers: Iterable[bytes], tls: ssl.SSLContext | None = None
) -> AsyncIterator[Server]:
    """Run a server."""
    said = Server(answers)
    tasks = set[asyncio.Task[None]]()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.ensure_future(said.serve(reader, writer)))

    async with await asyncio.start_server(
        accept, "127.0.0.1", 0, ssl=tls, limit=2**26
    ) as listening:
        said.url = (
            f"{'https' if tls else 'http'}://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        )
        yield said
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
