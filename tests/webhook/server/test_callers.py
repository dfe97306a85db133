"""Client certificates: who may send reviews, and how others are rejected."""

import asyncio
import json
import ssl

import pytest

from tests.controlplane.pki import CertificateAuthority
from tests.webhook.server.conftest import NAME, review, trust
from tests.webhook.server.test_convert import review as conversion
from webhook.server.callers import Callers


class Clients:
    """A CA of clients, its bundle as a file, and TLS contexts of its clients."""

    def __init__(self, directory, authority):
        self._directory, self._authority = directory, authority
        self.bundle = directory / "clients.crt"
        self.renew()

    def renew(self):
        """Create another CA, and replace the bundle."""
        self.ca = CertificateAuthority()
        self.bundle.write_bytes(self.ca.pem)

    def context(self, name, ca=None):
        """Return the TLS of a client with a certificate."""
        certificate, key = (ca or self.ca).client_certificate(name)
        for file, data in (("client.crt", certificate), ("client.key", key)):
            (self._directory / file).write_bytes(data)
        context = trust(self._authority)
        context.load_cert_chain(self._directory / "client.crt", self._directory / "client.key")
        return context


@pytest.fixture
def clients(tmp_path, authority):
    """Clients with certificates of the webhook's client CA."""
    return Clients(tmp_path, authority)


@pytest.fixture
def start_for(start, clients):
    """Return a function that starts a webhook with a client CA."""

    def run(*names, **config):
        certificate = {"client_ca": clients.bundle}
        return start(callers=Callers(names), certificate=certificate, **config)

    return run


async def test_a_client_with_a_certificate_is_answered(start_for, clients):
    """Without names, every client with a certificate of the CA is answered."""
    async with start_for() as webhook, webhook.connected(clients.context("any")) as wire:
        for path in ("/validate", "/mutate"):
            assert (await wire.post(review(), path)).response["allowed"]


@pytest.mark.parametrize("path", ["/validate", "/mutate"])
async def test_a_client_without_a_certificate_is_refused(start_for, path):
    """The response names the missing certificate, before the body is read."""
    async with start_for() as webhook:
        answer = await webhook.post(review(), path)
    assert (answer.status, answer.headers["connection"]) == (403, "close")
    assert answer.body == b"reviews need a client certificate, which is signed by --client-ca\n"
    hook = path.strip("/")
    assert webhook.counted("controller_runtime_webhook_requests_total", webhook=hook, code="403")


async def test_a_name_that_is_not_allowed_is_refused(start_for, clients):
    """The answer names the client's name; allowed ones get their review."""
    async with start_for("kube-apiserver", "other") as webhook:
        async with webhook.connected(clients.context("mallory")) as wire:
            answer = await wire.post(review())
        assert answer.status == 403
        assert answer.body == b'"mallory" of the client certificate is not among --client-names\n'
        async with webhook.connected(clients.context("kube-apiserver")) as wire:
            assert (await wire.post(review())).status == 200


async def test_a_certificate_of_another_ca_ends_the_handshake(start_for, clients):
    """The TLS handshake ends with an alert."""
    stranger = clients.context("kube-apiserver", CertificateAuthority())
    async with start_for() as webhook:
        with pytest.raises(ssl.SSLError, match="UNKNOWN_CA"):
            async with webhook.connected(stranger) as wire:
                await wire.post(review())


async def test_conversions_need_no_certificate(start_for):
    """The API server sends none in conversion requests."""
    async with start_for() as webhook:
        assert (await webhook.post(conversion(), "/convert")).status == 200


async def test_a_new_ca_is_used_without_a_restart(start_for, clients):
    """Certificates of the previous CA are then rejected; an invalid bundle changes nothing."""
    async with start_for() as webhook:
        old = clients.context("kube-apiserver")
        clients.bundle.write_text("no PEM")
        webhook.certificate.refresh()
        async with webhook.connected(old) as wire:
            assert (await wire.post(review())).status == 200
        clients.renew()
        webhook.certificate.refresh()
        async with webhook.connected(clients.context("kube-apiserver")) as wire:
            assert (await wire.post(review())).status == 200
        with pytest.raises(ssl.SSLError):
            async with webhook.connected(old) as wire:
                await wire.post(review())


async def test_connections_of_a_replaced_ca_are_closed(start_for, clients):
    """Idle ones at once; a new serving certificate alone closes none."""
    client = clients.context("kube-apiserver")
    async with start_for() as webhook, webhook.connected(client) as wire:
        assert (await wire.post(review())).status == 200
        webhook.certificate.refresh()
        assert (await wire.post(review())).status == 200
        clients.renew()
        webhook.certificate.refresh()
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await wire.post(review())


async def test_a_request_under_a_replaced_ca_is_the_last_of_its_connection(start_for, clients):
    """Its client was verified when it came."""
    client = clients.context("kube-apiserver")
    async with start_for() as webhook, webhook.connected(client) as wire:
        body = json.dumps(review()).encode()
        head = f"POST /validate HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: {len(body)}\r\n"
        await wire.send(head.encode() + b"Content-Type: application/json\r\n\r\n" + body[:9])
        in_flight = "controller_runtime_webhook_requests_in_flight"
        await webhook.until_counted(1, in_flight, webhook="validate")
        clients.renew()
        webhook.certificate.refresh()
        await wire.send(body[9:])
        answer = await wire.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")


async def test_an_empty_bundle_is_reported(start_for, clients, caplog):
    """The webhook is not ready, since it would answer no client."""
    clients.bundle.write_text("")
    async with start_for() as webhook:
        problem = f"{clients.bundle}: no CA certificates of clients"
        assert webhook.certificate.ready() == problem
    assert problem in caplog.text
