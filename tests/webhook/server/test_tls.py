"""The served certificate pair, and its replacement."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from certs import KeyPair, issue_ca, issue_serving
from tests.waiting import WITHIN
from tests.webhook.server.conftest import NAME, review, trust, write_pair
from webhook.server.certificate_pairs import PairFiles
from webhook.server.metrics import WebhookMetrics
from webhook.server.tls import ServingCertificate

NOW = datetime.now(UTC)
REFUSED = (ssl.SSLError, ConnectionError)  # the alert may arrive after the end of the connection


def mount(pair: KeyPair, volume: Path, state: str) -> None:
    """Update a volume as the kubelet does when a Secret changes: a new directory and one renamed link."""
    (volume / state).mkdir(parents=True)
    write_pair(pair, volume / state)
    (volume / "..data_tmp").symlink_to(state)
    (volume / "..data_tmp").rename(volume / "..data")
    for name in ("tls.crt", "tls.key"):
        if not (volume / name).is_symlink():
            (volume / name).symlink_to(f"..data/{name}")


@pytest.fixture
def certificate(tmp_path) -> ServingCertificate:
    """Return a serving certificate whose files do not exist yet."""
    return ServingCertificate(
        PairFiles(tmp_path / "tls.crt", tmp_path / "tls.key"), WebhookMetrics(CollectorRegistry())
    )


async def serial(webhook, trusts=None) -> str:
    """Shake hands and return the serial number of the certificate served."""
    async with webhook.connected(trusts) as wire:
        return wire.writer.get_extra_info("peercert")["serialNumber"]


def test_a_missing_pair_is_not_ready(certificate):
    """The problem names the file."""
    certificate.refresh()
    assert certificate.ready().endswith("tls.crt: No such file or directory")


def test_a_pair_is_ready_when_it_appears(certificate, pair, tmp_path):
    """No restart is needed."""
    certificate.refresh()
    write_pair(pair, tmp_path)
    certificate.refresh()
    assert certificate.ready() is None


async def test_a_pair_is_read_once(start):
    """A good pair is not read again before its files change."""
    async with start() as webhook:
        read = webhook.counted("certwatcher_read_certificate_total")
        webhook.certificate.refresh()
        assert webhook.counted("certwatcher_read_certificate_total") == read > 0


def test_an_expired_pair_is_not_ready(pair, tmp_path):
    """A pair that expires while served is reported."""
    clock = [datetime.now(UTC)]
    certificate = ServingCertificate(
        PairFiles(tmp_path / "tls.crt", tmp_path / "tls.key"),
        WebhookMetrics(CollectorRegistry()),
        now=lambda: clock[0],
    )
    write_pair(pair, tmp_path)
    certificate.refresh()
    clock[0] += timedelta(days=31)
    assert certificate.ready().startswith("the certificate expired at ")


async def test_the_kubelets_first_mount_is_picked_up(start, pair, tmp_path):
    """The listener is up before the Secret exists, refuses handshakes, and serves once the pair is there."""
    volume = tmp_path / "volume"
    volume.mkdir()
    async with start(with_pair=False) as webhook:
        with pytest.raises(REFUSED):
            await serial(webhook)
        assert webhook.certificate.ready()
        mount(pair, webhook.directory, "..2026_03_01_12_00_00.1")
        webhook.certificate.refresh()
        assert webhook.certificate.ready() is None
        assert (await webhook.post(review())).status == 200


async def test_each_swap_of_the_kubelet_is_served(start, authority, tmp_path):
    """Each of twenty renewals is served at the next handshake, while an old connection continues."""
    pairs = [issue_serving(authority, [NAME], [], NOW) for _ in range(21)]
    mount(pairs[0], tmp_path, "..0")
    async with start(with_pair=False) as webhook, webhook.connected() as old:
        seen = [await serial(webhook)]
        for number, pair in enumerate(pairs[1:], 1):
            mount(pair, tmp_path, f"..{number}")
            webhook.certificate.refresh()
            seen.append(await serial(webhook))
        assert len(set(seen)) == 21
        assert (await old.post(review())).status == 200


async def test_a_changed_file_is_noticed(start, authority, tmp_path):
    """The poll loads the new pair."""
    mount(issue_serving(authority, [NAME], [], NOW), tmp_path, "..0")
    async with start(with_pair=False, poll_seconds=0.01) as webhook, asyncio.timeout(WITHIN):
        before = await serial(webhook)
        mount(issue_serving(authority, [NAME], [], NOW), tmp_path, "..1")
        while await serial(webhook) == before:
            pass


def broken_pairs(pair: KeyPair, authority: KeyPair) -> dict[str, KeyPair]:
    """Return invalid pairs by their error."""
    other = issue_serving(authority, [NAME], [], NOW)
    expired = issue_serving(
        issue_ca("old", NOW - timedelta(days=60)), [NAME], [], NOW - timedelta(days=40)
    )
    return {
        "does not belong to the certificate": KeyPair(pair.certificate, other.key),
        "the certificate is not valid": KeyPair(pair.certificate[:300], pair.key),
        "the private key is not valid": KeyPair(pair.certificate, b""),
        "expired at": expired,
        "certificate is not valid PEM": KeyPair(b"x" * 10_000_000, pair.key),
    }


@pytest.mark.long
async def test_an_invalid_new_pair_keeps_the_old_one(start, pair, authority, caplog):
    """Each is logged once with its error and counted, and handshakes continue with the old pair."""
    async with start() as webhook:
        before = await serial(webhook)
        for number, (reason, broken) in enumerate(broken_pairs(pair, authority).items(), 1):
            caplog.clear()
            write_pair(broken, webhook.directory)
            webhook.certificate.refresh()
            assert [reason in record.getMessage() for record in caplog.records] == [True]
            assert webhook.counted("certwatcher_read_certificate_errors_total") == number
            assert webhook.certificate.ready() is None
            assert await serial(webhook) == before
        caplog.clear()
        webhook.certificate.refresh()
        assert not caplog.records


async def test_a_pair_that_becomes_valid_is_loaded(pair, tmp_path):
    """A pair rejected only because it was not yet valid is tried again."""
    clock = [NOW - timedelta(hours=2)]
    certificate = ServingCertificate(
        PairFiles(tmp_path / "tls.crt", tmp_path / "tls.key"),
        WebhookMetrics(CollectorRegistry()),
        now=lambda: clock[0],
    )
    write_pair(pair, tmp_path)
    certificate.refresh()
    assert "not valid before" in certificate.ready()
    clock[0] = NOW
    certificate.refresh()
    assert certificate.ready() is None


@pytest.mark.parametrize(
    ("floor", "version", "accepted"),
    [
        (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3, True),
        (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_2, False),
        (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2, True),
        (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3, True),
    ],
)
async def test_the_minimum_tls_version(start, authority, floor, version, accepted):
    """1.3 by default, 1.2 by choice; it applies to a replaced context too."""
    client = trust(authority)
    client.minimum_version = client.maximum_version = version
    async with start(certificate={"minimum_version": floor}) as webhook:
        if accepted:
            async with webhook.connected(client) as wire:
                assert (await wire.post(review())).status == 200
        else:
            with pytest.raises(REFUSED):
                await serial(webhook, client)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1:DeprecationWarning")
async def test_tls_1_1_is_always_rejected(start, authority):
    """Nothing below 1.2 is accepted."""
    client = trust(authority)
    client.set_ciphers("DEFAULT:@SECLEVEL=0")
    client.minimum_version = client.maximum_version = ssl.TLSVersion.TLSv1_1
    async with start(certificate={"minimum_version": ssl.TLSVersion.TLSv1_2}) as webhook:
        with pytest.raises(REFUSED):
            await serial(webhook, client)


async def test_no_handshake_fails_while_the_ca_rotates(start, authority, tmp_path):
    """Clients that trust old and new CA connect at every step."""
    successor = issue_ca("gatewright", NOW)
    both = trust(authority, successor)
    pairs = [issue_serving(ca, [NAME], [], NOW) for ca in [authority, successor] * 10]
    mount(pairs[0], tmp_path, "..0")
    async with start(with_pair=False) as webhook:
        done = asyncio.Event()

        async def shake_hands() -> int:
            count = 0
            while not done.is_set():
                async with webhook.connected(both) as wire:
                    assert (await wire.post(review())).status == 200
                count += 1
            return count

        async with asyncio.TaskGroup() as group:
            clients = [group.create_task(shake_hands()) for _ in range(4)]
            for number, pair in enumerate(pairs[1:], 1):
                mount(pair, tmp_path, f"..{number}")
                webhook.certificate.refresh()
                await serial(webhook, both)
            done.set()
        assert min(task.result() for task in clients) > 0
