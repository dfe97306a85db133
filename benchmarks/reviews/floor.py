"""The baseline: an aiohttp server over TLS that decodes each review and returns a constant answer."""

import asyncio
import ssl
import sys

import orjson
import uvloop
from aiohttp import web

ANSWER = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"1","allowed":true}}'
HEADERS = {"Content-Type": "application/json"}


async def answer(request: web.BaseRequest) -> web.Response:
    """Decode the body and allow."""
    orjson.loads(await request.read())
    return web.Response(body=ANSWER, headers=HEADERS)


async def main(directory: str, port: int) -> None:
    """Serve with the certificate in `directory` until killed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(f"{directory}/tls.crt", f"{directory}/tls.key")
    server = web.Server(answer, access_log=None)
    await asyncio.get_running_loop().create_server(server, "127.0.0.1", port, ssl=context)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2])))
