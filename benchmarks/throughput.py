"""The controller's writes per second with 4 ms per response.

`python -m benchmarks.throughput` prints it. The API server is the in-memory one of the tests, in
this process; the controller is the real one, in another process, with the default number of
workers.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import uvloop
from aiohttp import web

from config.api.webapp import WebApp
from controller.reconcilers.webapp import WEBAPP
from gatewright.testing import ApiServer
from tests.controlplane.processes import free_ports
from tests.gatewright.started import COMMAND

WEBAPPS = 500
WRITES = 3 * WEBAPPS
ANSWER_SECONDS = 0.004


async def measure() -> dict[str, float]:
    """Return the writes per second between the first and the last one."""
    times, done = list[float](), asyncio.Event()
    server = ApiServer(WebApp)
    answer = server._routes.answer

    async def slow(request: web.Request) -> web.StreamResponse:
        if request.method != "PATCH":
            return await answer(request)
        await asyncio.sleep(ANSWER_SECONDS)
        response = await answer(request)
        times.append(time.monotonic())
        if len(times) >= WRITES:
            done.set()
        return response

    server._routes.answer = slow  # type: ignore[method-assign]
    async with server:
        for number in range(WEBAPPS):
            metadata = {"name": f"shop-{number}", "namespace": "default"}
            server.create(
                WEBAPP.resource,
                {"metadata": metadata, "spec": {"replicas": 1, "image": "nginx:1.29"}},
            )
        with tempfile.TemporaryDirectory() as directory:
            process = controller(server.url, Path(directory))
            try:
                await asyncio.wait_for(done.wait(), 120)
            finally:
                process.terminate()
                await asyncio.to_thread(process.wait, 30)
    return {"writes": round((WRITES - 1) / (times[-1] - times[0]))}


def controller(url: str, directory: Path) -> subprocess.Popen[bytes]:
    """Start a controller of WebApps."""
    kubeconfig = {
        "clusters": [{"name": "memory", "cluster": {"server": url}}],
        "users": [{"name": "user", "user": {}}],
        "contexts": [{"name": "memory", "context": {"cluster": "memory", "user": "user"}}],
        "current-context": "memory",
    }
    (directory / "kubeconfig").write_text(json.dumps(kubeconfig))
    metrics, health = free_ports(2)
    options = [
        "--kubeconfig",
        str(directory / "kubeconfig"),
        "--kinds",
        "webapp",
        "--namespaces",
        "default",
    ]
    options += [
        "--metrics-listen",
        f"127.0.0.1:{metrics}",
        "--health-listen",
        f"127.0.0.1:{health}",
    ]
    command = [str(COMMAND), "controller", *options, "--namespace", "default"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603


if __name__ == "__main__":
    sys.stdout.write(json.dumps(uvloop.run(measure())) + "\n")
