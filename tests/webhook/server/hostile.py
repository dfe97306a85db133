"""Hostile clients of a webhook: `python -m tests.webhook.server.hostile ATTACK PORT CA SECONDS`."""

import asyncio
import json
import os
import select
import socket
import ssl
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

HEAD = b"POST /validate?timeout=3s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def review(
    object: dict[str, Any], group: str, resource: str, old: dict[str, Any] | None = None
) -> bytes:
    """Return a review of an object in the namespace shop."""
    kind = {"group": group, "version": "v1", "kind": object["kind"]}
    request = {
        "uid": "u-1",
        "operation": "UPDATE" if old else "CREATE",
        "kind": kind,
        "resource": {"group": group, "version": "v1", "resource": resource},
        "name": "it",
        "namespace": "shop",
        "userInfo": {"username": "mallory"},
        "object": object,
        "oldObject": old,
    }
    whole = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(whole, separators=(",", ":")).encode()


def role(verbs: int, names: int) -> bytes:
    """Return a Role with one rule, whose groups, resources and verbs multiply."""
    rule = {
        "apiGroups": [""],
        "verbs": [f"{n:x}" for n in range(verbs)],
        "resources": [f"{n:x}" for n in range(names)],
    }
    return review(
        {"kind": "Role", "metadata": {"name": "it"}, "rules": [rule]},
        "rbac.authorization.k8s.io",
        "roles",
    )


def deployment(containers: int, *, update: bool = False, container: str = "{}") -> bytes:
    """Return a Deployment with many small containers."""
    listed = [json.loads(container)] * containers
    object = {
        "kind": "Deployment",
        "metadata": {"name": "it"},
        "spec": {"template": {"spec": {"containers": listed}}},
    }
    return review(object, "apps", "deployments", object if update else None)


def pod(metadata: dict[str, Any] | None = None, spec: dict[str, Any] | None = None) -> bytes:
    """Return a Pod."""
    return review(
        {"kind": "Pod", "metadata": {"name": "it"} | (metadata or {}), "spec": spec or {}},
        "",
        "pods",
    )


def limited(amount: str) -> dict[str, Any]:
    """Return a container with a limit."""
    return {"name": "app", "image": "a", "resources": {"limits": {"cpu": amount}}}


def capable(number: int) -> dict[str, Any]:
    """Return a container that adds many capabilities."""
    return {
        "name": "app",
        "image": "a",
        "securityContext": {"capabilities": {"add": [f"X{n}" for n in range(number)]}},
    }


def ingress(number: int) -> bytes:
    """Return an Ingress with many hosts."""
    hosts = [f"a{n}.example.com" for n in range(number)]
    spec = {"rules": [{"host": host} for host in hosts[: number // 2]], "tls": [{"hosts": hosts}]}
    return review(
        {"kind": "Ingress", "metadata": {"name": "it"}, "spec": spec},
        "networking.k8s.io",
        "ingresses",
    )


def rules(number: int) -> bytes:
    """Return a Role with many rules."""
    rule = {
        "apiGroups": ["*"],
        "verbs": ["*", "get", "escalate"],
        "resources": ["*", "secrets", "pods/exec"],
    }
    role = {"kind": "Role", "metadata": {"name": "it"}, "rules": [rule] * number}
    return review(role, "rbac.authorization.k8s.io", "roles", role)


def policy(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a tenant's policy."""
    return {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "AdmissionPolicy",
        "metadata": {"name": "it", "namespace": "shop"},
        "spec": spec,
    }


def expressions(number: int) -> dict[str, Any]:
    """Return a tenant's policy with large regular expressions."""
    labels = {f"k{each}": rf"/(\pL{{1,{each % 90 + 10}}}){{9}}/" for each in range(number)}
    return policy({"policy": "required-labels", "params": {"labels": labels}})


def selector(number: int) -> dict[str, Any]:
    """Return a tenant's policy with a selector full of errors."""
    match = {"any": [{"objectSelector": {"matchExpressions": [{}] * number}}]}
    return policy({"policy": "replica-limits", "match": match})


DIGITS = f"{list(range(60))}"
COSTLY = policy(
    {
        "match": {"any": [{"kinds": ["Pod"]}]},
        "validations": [
            {
                "expression": f"{DIGITS}.all(a, {DIGITS}.all(b, {DIGITS}.all(c, '%d'.format([c]) != '')))"
            }
        ],
    }
)
GLOBS = policy({"policy": "replica-limits", "match": {"any": [{"names": ["?*" * 31000]}]}})
OBJECTS = {"expressions": expressions(60), "many expressions": expressions(1500), "globs": GLOBS}


def of_policy(object: dict[str, Any]) -> bytes:
    """Return the review of a policy object."""
    return review(object, "gatewright.io", "admissionpolicies")


def conversion(number: int) -> bytes:
    """Return a conversion of many objects."""
    named = {
        "apiVersion": "voting.schoolofdevops.com/v1alpha1",
        "kind": "VoteConfig",
        "metadata": {"name": "it"},
    }
    vote = named | {"spec": {"question": "Which?"}}
    request = {
        "uid": "u-1",
        "desiredAPIVersion": "voting.schoolofdevops.com/v1",
        "objects": [vote] * number,
    }
    whole = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "request": request,
    }
    return json.dumps(whole).encode()


BODIES: dict[str, Callable[[], tuple[str, bytes]]] = {
    "pod": lambda: ("/validate", pod()),
    "role 5001 x 14000": lambda: ("/validate", role(5001, 14000)),
    "role 3000 x 3000": lambda: ("/validate", role(3000, 3000)),
    "60 expressions": lambda: ("/validate", of_policy(expressions(60))),
    "3000 expressions": lambda: ("/validate", of_policy(expressions(3000))),
    "globs": lambda: ("/validate", of_policy(GLOBS)),
    "selector of 128 KB": lambda: ("/validate", of_policy(selector(43000))),
    "selector of 1 MB": lambda: ("/validate", of_policy(selector(340_000))),
    "mutate 43392 containers": lambda: ("/mutate", deployment(43392)),
    "update 21696 containers": lambda: ("/validate", deployment(21696, update=True)),
    "2700 empty containers": lambda: ("/validate", deployment(2700)),
    "update 1450 containers": lambda: ("/validate", deployment(1450, update=True)),
    "4300 containers": lambda: ("/validate", deployment(4300, container='{"name":"a"}')),
    "8 MB of containers": lambda: ("/validate", deployment(2_790_000)),
    "2500 capabilities": lambda: ("/validate", pod(spec={"containers": [capable(2500)]})),
    "20000 hosts": lambda: ("/validate", ingress(20_000)),
    "20000 rules": lambda: ("/validate", rules(20_000)),
    "8 MB of annotations": lambda: (
        "/validate",
        pod({"annotations": {f"{n:600}": "y" for n in range(13_000)}}),
    ),
    "ephemeral containers": lambda: (
        "/validate",
        pod(spec={"ephemeralContainers": [{"image": "a:/" * 20}] * 9000}),
    ),
    "volumes": lambda: (
        "/validate",
        pod(spec={"volumes": [{"hostPath": {"path": "/a/.." * 50}}] * 9000}),
    ),
    "large numbers": lambda: (
        "/validate",
        pod(spec={"containers": [limited("1e" + "9" * 9)] * 9000}),
    ),
    "8 MB of one key": lambda: ("/validate", pod(metadata={"labels": {"x" * 8_000_000: "y"}})),
    "8 MB of one quantity": lambda: (
        "/validate",
        pod(spec={"containers": [limited("x" * 8_000_000)]}),
    ),
    "duplicate keys": lambda: (
        "/validate",
        pod().replace(b'"name":"it"', b'"name":"it",' * 80_000 + b'"name":"it"'),
    ),
    "1000 levels": lambda: (
        "/validate",
        pod(spec={"containers": json.loads("[" * 900 + "]" * 900)}),
    ),
    "8 MB of one list": lambda: (
        "/validate",
        review({"kind": "Pod", "a": [0] * 4_000_000}, "", "pods"),
    ),
}

CROWDS: dict[str, tuple[str, bytes]] = {
    "light": ("/validate?timeout=30s", deployment(190)),
    "light mutations": ("/mutate?timeout=30s", deployment(190)),
    "large": ("/validate?timeout=30s", deployment(4300, container='{"name":"a"}')),
    "large mutations": ("/mutate?timeout=30s", deployment(4300)),
    "conversions": ("/convert?timeout=30s", conversion(400)),
    "large conversions": ("/convert?timeout=30s", conversion(5_000)),
    "8 MB": ("/validate?timeout=30s", review({"kind": "Pod", "a": "x" * 8_000_000}, "", "pods")),
}
"""Bodies that 100 connections of one address send again after each answer."""


class Attacker:
    """Many connections to one webhook, for some seconds."""

    def __init__(self, port: int, trusts: ssl.SSLContext, seconds: float) -> None:
        self._port, self._trusts = port, trusts
        self._end = time.monotonic() + seconds

    async def connect(self) -> Streams:
        """Open one connection."""
        return await asyncio.open_connection(
            "127.0.0.1", self._port, ssl=self._trusts, server_hostname="127.0.0.1"
        )

    async def each(self, number: int, attack: Callable[[Streams], Awaitable[None]]) -> None:
        """Attack over this many concurrent connections; replace each one that ends."""

        async def one() -> None:
            while time.monotonic() < self._end:
                try:
                    streams = await self.connect()
                    try:
                        await attack(streams)
                    finally:
                        streams[1].transport.abort()
                except (OSError, EOFError, ssl.SSLError):
                    await asyncio.sleep(0.05)

        await asyncio.wait(
            [asyncio.create_task(one()) for _ in range(number)],
            timeout=self._end - time.monotonic(),
        )

    async def body(self, path: str, body: bytes, number: int = 1, every: float = 0.2) -> None:
        """Send a review again and again, over each of some connections."""

        async def attack(streams: Streams) -> None:
            reader, writer = streams
            head = HEAD.replace(b"/validate?timeout=3s", path.encode())
            while time.monotonic() < self._end:
                writer.write(head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
                await writer.drain()
                answer = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    line
                    for line in answer.lower().split(b"\r\n")
                    if line.startswith(b"content-length")
                )
                await reader.readexactly(int(length.split(b":")[1]))
                if b"connection: close" in answer.lower():
                    return
                await asyncio.sleep(every)

        await self.each(number, attack)

    async def flood(self, number: int, begun: bytes, piece: bytes) -> None:
        """Begin a request over many connections, and then send the same piece as fast as it is read."""

        async def attack(streams: Streams) -> None:
            _, writer = streams
            writer.write(begun)
            while time.monotonic() < self._end:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)

        await self.each(number, attack)

    async def handshakes(self, number: int) -> None:
        """Open connections as fast as they are accepted; close each one after its handshake."""

        async def attack(streams: Streams) -> None:
            """Close the connection."""

        await self.each(number, attack)

    async def bursts(self, number: int, data: bytes) -> None:
        """Send the same bytes over many connections at the same time, read for a while, and close."""

        async def attack(streams: Streams) -> None:
            reader, writer = streams
            writer.write(data)
            try:
                async with asyncio.timeout(0.5):
                    while await reader.read(1 << 16):
                        pass
            except TimeoutError:
                pass

        await self.each(number, attack)

    async def garbage(self, number: int, data: bytes) -> None:
        """Send bytes that are not TLS over many connections."""

        async def one() -> None:
            while time.monotonic() < self._end:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", self._port)
                    writer.write(data)
                    await writer.drain()
                    writer.transport.abort()
                except OSError:
                    await asyncio.sleep(0.05)

        await asyncio.wait(
            [asyncio.create_task(one()) for _ in range(number)],
            timeout=self._end - time.monotonic(),
        )

    async def hold(self, number: int, begun: bytes, drop: bytes = b"", asked: bool = False) -> None:
        """Hold many connections open, after a review or without one, and send a byte now and then."""
        review = deployment(1)

        async def attack(streams: Streams) -> None:
            reader, writer = streams
            if asked:
                writer.write(HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(review), review))
                await reader.readuntil(b"\r\n\r\n")
            writer.write(begun)
            while time.monotonic() < self._end and not writer.transport.is_closing():
                writer.write(drop)
                await asyncio.sleep(0.1)

        await self.each(number, attack)

    def records(self, number: int, data: bytes = b"") -> None:
        """Send bytes in TLS records of one byte over many connections, as fast as they are read.

        `data` is a whole request, sent again and again; without it, a body that never ends.
        """
        begun = b"" if data else LONG
        piece = data or b" " * 1000
        connections: list[RecordsOfOneByte] = []
        while time.monotonic() < self._end:
            while len(connections) < number:
                with suppress(OSError, ssl.SSLError):
                    connections.append(RecordsOfOneByte(self._port, self._trusts, begun))
            ready = [each for each in connections if each.is_writable()]
            if not ready:
                time.sleep(0.0005)
            for connection in ready:
                try:
                    connection.send(piece)
                except OSError:
                    connections.remove(connection)


class RecordsOfOneByte:
    """One connection whose every TLS record holds one byte."""

    def __init__(self, port: int, trusts: ssl.SSLContext, begun: bytes) -> None:
        """Connect, and send the beginning in one record."""
        incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = trusts.wrap_bio(incoming, self._outgoing, server_hostname="127.0.0.1")
        self._socket = socket.create_connection(("127.0.0.1", port))
        shake_hands(self._socket, self._tls, incoming, self._outgoing)
        if begun:
            self._tls.write(begun)
        self._unsent = self._outgoing.read()
        self._socket.setblocking(False)

    def is_writable(self) -> bool:
        """Return whether the server still reads."""
        return bool(select.select([], [self._socket], [], 0)[1])

    def send(self, piece: bytes) -> None:
        """Send the remaining bytes, then each byte of a piece; read and discard the answers."""
        with suppress(BlockingIOError):
            while self._socket.recv(1 << 16):
                pass
        if not self._unsent:
            for byte in range(len(piece)):
                self._tls.write(piece[byte : byte + 1])
            self._unsent = self._outgoing.read()
        with suppress(BlockingIOError):
            self._unsent = self._unsent[self._socket.send(self._unsent) :]


def shake_hands(
    connection: Any, tls: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO
) -> None:
    """Complete a TLS handshake over a socket."""
    while True:
        try:
            tls.do_handshake()
            connection.sendall(outgoing.read())
            return
        except ssl.SSLWantReadError:
            connection.sendall(outgoing.read())
            data = connection.recv(65536)
            if not data:
                raise ConnectionError("closed in the handshake") from None
            incoming.write(data)


def request(body: bytes) -> bytes:
    """Return a whole request."""
    return HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
LONG = HEAD + b"Content-Length: 8000000\r\n\r\n"
SLOW: dict[str, Callable[[Attacker], Awaitable[None]]] = {
    "chunks of one byte": lambda a: a.flood(20, CHUNKED, b"1\r\nx\r\n" * 5000),
    "long chunk extensions": lambda a: a.flood(20, CHUNKED, b"1;" + b"x" * 4000 + b"\r\nx\r\n"),
    "bytes one by one": lambda a: a.flood(50, LONG, b"x"),
    "TLS records of one byte": lambda a: asyncio.to_thread(a.records, 50),
    "reviews in TLS records of one byte": lambda a: asyncio.to_thread(
        a.records, 50, request(pod())
    ),
    "Expect": lambda a: a.hold(500, HEAD + b"Content-Length: 100\r\nExpect: 100-continue\r\n\r\n"),
    "handshakes": lambda a: a.handshakes(20),
    "no TLS": lambda a: a.garbage(20, b"\x16\x03\x01" + os.urandom(4000)),
    "bodies that end early": lambda a: a.bursts(50, LONG + pod()),
    "pipelined": lambda a: a.bursts(10, request(pod()) * 200),
    "many headers": lambda a: a.bursts(50, HEAD + b"X: y\r\n" * 20_000 + b"\r\n"),
    "never used": lambda a: a.hold(1000, b""),
    "used once": lambda a: a.hold(1000, b"", asked=True),
    "dribbled headers": lambda a: a.hold(1000, HEAD, b"X: y\r\n", asked=True),
    "dribbled bodies": lambda a: a.hold(1000, LONG, b"x"),
}


async def main(attack: str, port: int, ca: str, seconds: float) -> None:
    """Run one attack at low priority, so that the attacked process keeps its CPU time, as if on another machine."""
    os.nice(10)
    attacker = Attacker(port, ssl.create_default_context(cafile=ca), seconds)
    if attack in SLOW:
        await SLOW[attack](attacker)
    elif attack in CROWDS:
        await attacker.body(*CROWDS[attack], number=100, every=0)
    else:
        await attacker.body(*BODIES[attack]())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4])))
