"""The conversion of a CRD: strategy None until a webhook answers, then Webhook; no other field is changed."""

import base64
import re
from datetime import UTC, datetime, timedelta

import pytest

from certs import issue_ca, issue_serving, join
from controller.registration import upkeep
from controller.registration.configurations import MUTATING, VALIDATING
from controller.registration.conversion import CRD, without_conversion
from kube.client import Client
from tests.controller.registration.conftest import (
    CONVERTED,
    NAME,
    NAMES,
    NAMESPACE,
    install,
    working,
)

NONE = {"strategy": "None"}
SCHEMA = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}


def crd() -> dict:
    """An installed CRD: it does not set `conversion`, and the API server sets strategy None."""
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": SCHEMA}
        for name in ("v1", "v1beta1")
    ]
    plural, _, group = CONVERTED.partition(".")
    names = {
        "plural": plural,
        "singular": "voteconfig",
        "kind": "VoteConfig",
        "listKind": "VoteConfigList",
    }
    spec = {
        "group": group,
        "scope": "Namespaced",
        "names": names,
        "versions": versions,
        "conversion": NONE,
    }
    return {"metadata": {"name": CONVERTED, "labels": {"theirs": "yes"}}, "spec": spec}


async def install_all(client: Client) -> None:
    """Install the chart's objects, and the CRD."""
    await install(client)
    await client.create(CRD, crd())


@pytest.fixture
async def converting(server, client, tmp_path):
    """An installation whose webhook answers, once the stanza is filled in."""
    await install_all(client)
    async with working(server.endpoint, tmp_path) as running:
        await running.until(lambda: running.secret(NAMES.tls_secret))
        running.mount()
        running.wake()
        await running.until(running.registered)
        await running.until(lambda: running.stanza().get("strategy") == "Webhook")
        yield running


async def test_nothing_is_written_before_a_webhook_answers(server, client, tmp_path, monkeypatch):
    """Until then, the strategy stays None; then address and bundle are set, and nothing else changes."""
    monkeypatch.setattr(upkeep, "PROBE_AGAIN", timedelta(milliseconds=10))
    await install_all(client)
    async with working(server.endpoint, tmp_path) as running:
        await running.until(lambda: running.secret(NAMES.tls_secret))
        result = await running.conversion.reconcile(running.conversion.request)
        assert (result.requeue_after, running.stanza()) == (timedelta(milliseconds=10), NONE)
        running.mount()
        await running.until(lambda: running.stanza() != NONE)
        bundle = base64.b64encode(running.certificates.ca_bundle()).decode()
        assert running.stanza() == {
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {
                    "url": f"https://localhost:{running.connections.port}/convert",
                    "caBundle": bundle,
                },
                "conversionReviewVersions": ["v1"],
            },
        }
        stored = server.get(CRD, CONVERTED)
        assert stored["metadata"]["labels"] == {"theirs": "yes"}
        assert stored["spec"] | {"conversion": NONE} == crd()["spec"]


async def test_a_changed_conversion_is_repaired_after_seconds(converting, server):
    """A second repair within seconds is delayed; a correct CRD costs no request."""
    before = converting.stanza()
    service = {"service": {"namespace": "theirs", "name": "theirs"}}
    converting.clock.go_on()
    server.change(
        CRD,
        CONVERTED,
        {
            "spec": {
                "conversion": before | {"webhook": before["webhook"] | {"clientConfig": service}}
            }
        },
    )
    await converting.until(lambda: "service" in converting.stanza()["webhook"]["clientConfig"])
    await converting.until(lambda: converting.stanza() == before)
    server.requests.clear()
    assert (
        await converting.conversion.reconcile(converting.conversion.request)
    ).requeue_after is None
    assert server.requests.log == []
    server.change(CRD, CONVERTED, {"spec": {"conversion": NONE}})
    await converting.until(lambda: converting.stanza() != before)
    assert (
        await converting.conversion.reconcile(converting.conversion.request)
    ).requeue_after == timedelta(seconds=2)
    assert server.requests.writes == []


async def test_two_releases_that_keep_one_conversion_calm_down(converting, server, caplog):
    """After five repairs the delay grows up to ten minutes; one warning names object and writer."""
    before, conversion = converting.stanza(), converting.conversion
    theirs = {"service": {"namespace": "theirs", "name": "theirs"}}
    other = before | {"webhook": before["webhook"] | {"clientConfig": theirs}}

    async def changed_by_the_other() -> None:
        server.change(CRD, CONVERTED, {"spec": {"conversion": other}})
        await converting.until(lambda: converting.stanza() != before)

    async def is_repaired_after(seconds: float) -> bool:
        converting.clock.now += seconds
        await conversion.reconcile(conversion.request)
        return server.get(CRD, CONVERTED)["spec"]["conversion"] == before

    for interval in (2, 2, 2, 2, 2, 30, 60, 120, 240, 480, 600, 600):
        await changed_by_the_other()
        assert not await is_repaired_after(interval - 1)
        assert await is_repaired_after(1)
        await converting.until(lambda: converting.stanza() == before)
    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert [re.sub('by .*"somebody"; ', "by WRITERS; ", each) for each in warnings] == [
        f"CustomResourceDefinition {CONVERTED} is changed again and again by WRITERS; it is "
        "restored after 30 s, then after twice the time with each change, up to ten minutes"
    ]


async def test_a_bundle_is_renewed_also_while_no_webhook_answers(converting, server):
    """Otherwise a webhook that is down would block the rotation of its own certificate."""
    before = converting.stanza()
    config = before["webhook"]["clientConfig"] | {"caBundle": ""}
    converting.clock.go_on()
    converting.policies.engine = None
    stale = before | {"webhook": before["webhook"] | {"clientConfig": config}}
    server.change(CRD, CONVERTED, {"spec": {"conversion": stale}})
    await converting.until(lambda: converting.stanza() == stale)
    await converting.until(lambda: converting.stanza() == before)


async def test_the_conversion_is_restored_when_the_process_ends(converting, client, server):
    """`gatewright run` restores the conversion at its end; a deleted CRD is skipped."""
    await without_conversion(client, CONVERTED)
    assert server.get(CRD, CONVERTED)["spec"]["conversion"] == NONE
    await without_conversion(client, "others.example.com")


async def test_an_injected_bundle_is_copied_to_the_conversion(server, client, tmp_path):
    """The caBundle comes from the webhook configuration, into which cert-manager injects it."""
    authority = issue_ca("theirs", datetime.now(UTC))
    pair = issue_serving(authority, NAMES.dns_names, [], datetime.now(UTC))
    await install_all(client)
    async with working(server.endpoint, tmp_path, own_certificates=False) as running:
        (tmp_path / "tls.crt").write_bytes(pair.certificate)
        (tmp_path / "tls.key").write_bytes(pair.key)
        running.certificate.refresh()
        await running.until(lambda: running.webhooks(VALIDATING) and running.webhooks(MUTATING))
        assert running.stanza() == NONE
        (webhook,) = running.webhooks(VALIDATING)
        bundle = base64.b64encode(authority.certificate).decode()
        config = webhook["clientConfig"] | {"caBundle": bundle}
        server.change(VALIDATING, NAME, {"webhooks": [webhook | {"clientConfig": config}]})
        await running.until(lambda: running.stanza() != NONE)
        assert running.stanza()["webhook"]["clientConfig"]["caBundle"] == bundle


async def test_a_new_authority_signs_nothing_before_the_crd_trusts_it(converting, server):
    """The leaf follows the bundle, there as in the configurations."""
    before = converting.secret(NAMES.ca_secret)
    converting.clock.go_on()
    server.delete(converting.certificates.ca_cache.resource, NAMES.ca_secret, NAMESPACE)
    leaf = converting.secret(NAMES.tls_secret)
    await converting.until(lambda: converting.secret(NAMES.tls_secret) not in ({}, leaf))
    after = converting.secret(NAMES.ca_secret)
    bundle = base64.b64decode(
        server.get(CRD, CONVERTED)["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"]
    )
    assert bundle == after["ca.crt"] == join(after["tls.crt"], before["tls.crt"])
