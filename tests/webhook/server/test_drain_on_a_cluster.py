"""One of two webhooks shuts down, and users of the API server see no failure."""

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import pytest
from prometheus_client import CollectorRegistry

from certs import issue_serving
from controller.registration.configurations import VALIDATING, WebhookClientConfig, registration
from kube.client import Client
from kube.credentials import load
from kube.errors import ApiError
from kube.resource import Resource
from tests.waiting import eventually
from tests.webhook.server.conftest import ENGINE, Policies, write_pair
from webhook.server.admission import AdmissionHandler
from webhook.server.certificate_pairs import PairFiles
from webhook.server.connections import ServerConfig
from webhook.server.metrics import WebhookMetrics
from webhook.server.serve import listening
from webhook.server.tls import ServingCertificate

POD = Resource("", "v1", "pods", "Pod")
CLIENTS = 16


class Service:
    """A Service as the API server sees it: one address that connects to its endpoints in turn."""

    def __init__(self) -> None:
        self.endpoints: list[int] = []
        self.connected: dict[int, int] = {}
        self._next = 0

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward a connection in both directions until one side ends it."""
        self._next += 1
        port = self.endpoints[self._next % len(self.endpoints)]
        self.connected[port] = self.connected.get(port, 0) + 1
        there, back = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(
            self._pass(reader, back), self._pass(there, writer), return_exceptions=True
        )

    @staticmethod
    async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()


@pytest.mark.controlplane
async def test_no_request_fails_when_one_of_two_webhooks_ends(empty_plane, authority, tmp_path):
    """SIGTERM, a second until its endpoint is removed, then exit: under load, with Fail, no request is denied."""
    service, refused, made, over = Service(), [], [], asyncio.Event()
    write_pair(issue_serving(authority, ["127.0.0.1"], [], datetime.now(UTC)), tmp_path)
    async with AsyncExitStack() as stack:
        webhooks = []
        for _ in range(2):
            metrics = WebhookMetrics(CollectorRegistry())
            certificate = ServingCertificate(
                PairFiles(tmp_path / "tls.crt", tmp_path / "tls.key"), metrics
            )
            config = ServerConfig(host="127.0.0.1", port=0, linger_seconds=4, grace_seconds=3)
            handler = AdmissionHandler(Policies(), metrics, {})
            webhooks.append(
                await stack.enter_async_context(listening(config, handler, certificate, metrics))
            )
        service.endpoints = [each.port for each in webhooks]
        proxy = await asyncio.start_server(service.connect, "127.0.0.1", 0)
        stack.callback(proxy.close)
        url = f"https://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
        client = await stack.enter_async_context(Client(await load(empty_plane.kubeconfig)))
        address = WebhookClientConfig(url, authority.certificate)
        configuration, _ = registration(ENGINE, []).configurations("drain", address)
        await client.create(VALIDATING, configuration)

        async def keep_asking(number: int) -> None:
            while not over.is_set():
                pod = {"metadata": {"name": f"p-{number}", "namespace": "default"}, "spec": SPEC}
                try:
                    await client.create(POD, pod, dry_run=True)
                    made.append(number)
                except ApiError as error:
                    refused.append(str(error))

        async with asyncio.TaskGroup() as group:
            for number in range(CLIENTS):
                group.create_task(keep_asking(number))
            await eventually(lambda: len(service.connected) == 2 and len(made) > CLIENTS)
            draining = group.create_task(webhooks[0].drain())
            await asyncio.sleep(1)  # that is how long its endpoint stays
            service.endpoints.pop(0)
            await draining
            await webhooks[0].shutdown(1)
            after = len(made)
            await eventually(lambda: len(made) > after + CLIENTS)
            over.set()
    assert refused == []


SPEC = {"containers": [{"name": "app", "image": "nginx"}], "automountServiceAccountToken": False}
