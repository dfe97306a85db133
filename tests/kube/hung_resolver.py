"""Sends a request to an API server by its IP address while every DNS look-up hangs.

This program runs in separate network and mount namespaces, with a single name server that never answers. It prints
"answered" or the error.
"""

import asyncio
import fcntl
import os
import socket
import struct
import subprocess
import sys
import tempfile
from importlib import import_module

from gatewright.testing.fake_apiserver import FakeApiServer
from kube.client import Client

SIOCSIFFLAGS, UP = 0x8914, 0x1 | 0x40
LOOK_UPS = 8  # more than the resolver's threads
RESOLVER = "nameserver 127.0.0.1\noptions timeout:30 attempts:1\n"


def hang_the_resolver() -> socket.socket:
    """Make a socket that is never read the only name server."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", UP))
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(RESOLVER)
        file.flush()
        subprocess.run(["mount", "--bind", file.name, "/etc/resolv.conf"], check=True)
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    silent.bind(("127.0.0.1", 53))
    return silent


async def ask() -> str:
    """Send a request to the API server while look-ups hang; return the result."""
    loop = asyncio.get_running_loop()
    async with FakeApiServer() as server:
        hung = [
            asyncio.ensure_future(
                loop.getaddrinfo(f"{number}.example.com", 443, type=socket.SOCK_STREAM)
            )
            for number in range(LOOK_UPS)
        ]
        await asyncio.sleep(0.2)  # until the look-ups occupy all threads
        async with Client(server.endpoint, timeout=10) as client:
            await client.versions()
        return "answered" if not any(each.done() for each in hung) else "the look-ups ended"


if __name__ == "__main__":
    resolver = hang_the_resolver()
    module, name = sys.argv[1].split(":")
    with asyncio.Runner(loop_factory=getattr(import_module(module), name)) as runner:
        print(runner.run(ask()), flush=True)
        os._exit(0)  # the look-up threads never end
