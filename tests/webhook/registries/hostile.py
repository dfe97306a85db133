"""Hostile registries, which cost a webhook as much as possible: `python -m tests.webhook.registries.hostile PORT`.

The first part of a repository's name selects the registry's behaviour.
"""

import asyncio
import json
import logging
import sys
from itertools import count

from aiohttp import web

from tests.webhook.registries.conftest import (
    Handler,
    digest_of,
    endless,
    hanging,
    never_ending_redirect,
    rate_limited,
)
from tests.webhook.registries.signing import BUNDLE

MANIFEST_BYTES = 4 * 1024 * 1024
BLOB_BYTES = 1024 * 1024
DIGEST = f"sha256:{'a' * 64}"
NUMBERS = count()


async def trickling(request: web.Request) -> web.StreamResponse:
    """Answer with a byte ten times a second."""
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.1)


async def elsewhere(request: web.Request) -> web.Response:
    """Redirect to another host, which never answers."""
    return web.Response(status=307, headers={"Location": f"https://192.0.2.1{request.path}"})


async def another(request: web.Request) -> web.Response:
    """Respond with content of another digest, or with a reference to it."""
    manifests = [{"digest": DIGEST}] * 50
    return web.json_response({"manifests": manifests, "number": next(NUMBERS)})


async def always_unauthorized(request: web.Request) -> web.Response:
    """Issue tokens, and reject them all."""
    if "token" in request.path:
        return web.json_response({"token": str(next(NUMBERS))})
    realm = f"http://{request.host}{request.path}/token"
    return web.Response(status=401, headers={"WWW-Authenticate": f'Bearer realm="{realm}"'})


async def many_referrers(request: web.Request) -> web.Response:
    """List ten thousand referrers."""
    return web.json_response({"manifests": [{"digest": DIGEST, "mediaType": BUNDLE}] * 10_000})


NESTED = b'{"manifests":[' + b",".join([b'{"digest":[[[]]]}'] * (MANIFEST_BYTES // 20)) + b"]}"


async def costly_json(request: web.Request) -> web.Response:
    """Answer with as many JSON values as the size limit allows."""
    return web.Response(body=NESTED)


def costly_bundle(number: int) -> bytes:
    """Return a bundle with as many signatures as the size limit allows."""
    signatures = [{"sig": "MEUCIQDx"}] * 10_000
    envelope = {"payload": "e30=", "payloadType": "x", "signatures": signatures}
    material = {"publicKey": {"hint": str(number)}}
    bundle = {"verificationMaterial": material, "dsseEnvelope": envelope}
    body = json.dumps(bundle | {"more": []})
    room = (BLOB_BYTES - len(body)) // 3 - 1
    return (body[:-2] + ",".join(["[]"] * room) + "]}").encode()


COSTLY = {digest_of(body): body for body in map(costly_bundle, range(50))}


async def costly_bundles(request: web.Request) -> web.Response:
    """Answer with fifty bundles, each as large as allowed and costly to verify."""
    name = request.path.rpartition("/")[2]
    if name in COSTLY:
        return web.Response(body=COSTLY[name])
    image = request.path.split("/")[3].removeprefix("of-")
    if "/referrers/" in request.path:
        digests = [digest_of(_manifest(image, digest)) for digest in COSTLY]
        return web.json_response({"manifests": [{"digest": each} for each in digests]})
    found = (_manifest(image, digest) for digest in COSTLY)
    body = next((each for each in found if digest_of(each) == name), None)
    return web.Response(status=404) if body is None else web.Response(body=body)


def _manifest(image: str, digest: str) -> bytes:
    layers = [{"digest": digest, "mediaType": BUNDLE}]
    return json.dumps({"layers": layers, "subject": {"digest": f"sha256:{image}"}}).encode()


ATTACKS: dict[str, Handler] = {
    "silent": hanging,
    "trickling": trickling,
    "endless": endless,
    "redirects": never_ending_redirect,
    "elsewhere": elsewhere,
    "another": another,
    "unauthorized": always_unauthorized,
    "limited": rate_limited,
    "referrers": many_referrers,
    "json": costly_json,
    "bundles": costly_bundles,
}


async def answer(request: web.Request) -> web.StreamResponse:
    """Answer with the behaviour that the repository selects."""
    return await ATTACKS[request.path.split("/")[2]](request)


if __name__ == "__main__":
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    logging.disable()
    web.run_app(application, host="127.0.0.1", port=int(sys.argv[1]), print=None)
