"""The baseline: an aiohttp server over TLS that decodes each review and returns a constant answer.

Parts of it can be measured, too.
"""

import asyncio
import ssl
import sys
from typing import cast

import orjson
import uvloop
from aiohttp import web

from webhook import review

ANSWER = (
    b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",'
    b'"response":{"uid":"1","allowed":true}}'
)
HEADERS = {"Content-Type": "application/json"}
LAYERS = {
    "tls": "uvloop receives and decrypts",
    "collected": "and collects the body",
    "http": "aiohttp parses HTTP, and collects the body",
    "envelope": "and the envelope is decoded, as in Gatewright",
    "decoded": "the floor: aiohttp, and the whole review is decoded",
}
WORK = {"http": len, "envelope": review.attributes, "decoded": orjson.loads}


class Receiver(asyncio.Protocol):
    """Answers requests, reading only their length."""

    transport: asyncio.Transport

    def __init__(self, *, collects: bool) -> None:
        self._collects = collects
        self._left = 0
        self._pieces = list[bytes]()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport for the response."""
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer when the whole body has arrived."""
        if self._left:
            self._left -= len(data)
        else:
            head, _, rest = data.partition(b"\r\n\r\n")
            self._left = int(
                head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            ) - len(rest)
        if self._collects:
            self._pieces.append(data)
        if not self._left:
            b"".join(self._pieces)
            self._pieces.clear()
            self.transport.write(
                b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(ANSWER), ANSWER)
            )


async def main(directory: str, port: int, layer: str) -> None:
    """Serve with the certificate in `directory` until killed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(f"{directory}/tls.crt", f"{directory}/tls.key")

    async def answer(request: web.BaseRequest) -> web.Response:
        WORK[layer](await request.read())
        return web.Response(body=ANSWER, headers=HEADERS)

    def receiver() -> asyncio.Protocol:
        return Receiver(collects=layer == "collected")

    protocol = web.Server(answer, access_log=None) if layer in WORK else receiver
    await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", port, ssl=context)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
