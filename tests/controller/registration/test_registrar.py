"""The running reconcilers: certificates are issued, and a webhook is registered only once it answers."""

import asyncio
import base64
import logging
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from certs import issue_ca, issue_serving, join
from controller.reconcilers.resources import SECRET, SERVICE
from controller.registration import upkeep
from controller.registration.certificates import LABELS
from controller.registration.configurations import MUTATING, VALIDATING
from controller.registration.probe import ProbeError, probe
from kube.client import Client
from kube.credentials import load
from kube.resource import Resource
from tests.controller.registration.conftest import NAME, NAMES, NAMESPACE, bound, install, working
from tests.waiting import eventually
from webhook.engine import Engine

CONFIGURATIONS = (VALIDATING, MUTATING)


def encoded(**data: bytes) -> dict[str, str]:
    """Return the data of a Secret."""
    return {key.replace("_", "."): base64.b64encode(value).decode() for key, value in data.items()}


def bundle_of(webhook: dict) -> bytes:
    """Return the caBundle of a webhook."""
    return base64.b64decode(webhook["clientConfig"]["caBundle"])


@pytest.fixture
def log(caplog):
    """The log lines about registration, informational ones included."""
    caplog.set_level(logging.INFO, "gatewright.registration")
    return caplog


async def test_both_secrets_are_created_at_the_first_start(system):
    """The caBundle verifies the leaf, and only one Secret has the key of the authority."""
    authority, serving = system.secret(NAMES.ca_secret), system.secret(NAMES.tls_secret)
    assert sorted(authority) == ["ca.crt", "tls.crt", "tls.key"]
    assert sorted(serving) == ["tls.crt", "tls.key"]
    assert authority["tls.key"] not in serving.values()


async def test_nothing_is_registered_before_a_webhook_answers(
    server, client, tmp_path, monkeypatch, log
):
    """Both configurations are filled when the webhook answers with its certificate."""
    monkeypatch.setattr(upkeep, "PROBE_AGAIN", timedelta(milliseconds=10))
    await install(client)
    async with working(server.endpoint, tmp_path) as system:
        await system.until(lambda: system.secret(NAMES.tls_secret))
        with pytest.raises(ProbeError, match="cannot be reached: connection reset by peer"):
            await probe(system.registrar.at, system.certificates.ca_bundle())
        assert not any(server.get(resource, NAME).get("webhooks") for resource in CONFIGURATIONS)
        await until_logged(log, system.registrar.ready() or "")
        system.mount()
        await system.until(system.registered)
        assert system.registrar.ready() is None
        for resource in CONFIGURATIONS:
            (webhook,) = system.webhooks(resource)
            assert bundle_of(webhook) == system.certificates.ca_bundle()


async def test_a_service_is_dialled_by_its_cluster_ip(server, client, tmp_path, monkeypatch, log):
    """No DNS look-up is made; the error names a missing object."""
    monkeypatch.setattr(upkeep, "PROBE_AGAIN", timedelta(milliseconds=10))
    about = f"Service {NAMESPACE}/gatewright-webhook"
    service = {"metadata": {"name": "gatewright-webhook", "namespace": NAMESPACE}}
    await install(client)
    async with working(server.endpoint, tmp_path, by_service=True) as system:
        await system.until(lambda: system.secret(NAMES.tls_secret))
        system.mount()
        await until_logged(log, f"{about} does not exist")
        server.create(SERVICE, service | {"spec": {"clusterIP": "None"}})
        await until_logged(log, f"{about} has no cluster IP, so the API server cannot call it")
        server.change(
            SERVICE, "gatewright-webhook", {"spec": {"clusterIP": "127.0.0.9"}}, NAMESPACE
        )
        at = f"127.0.0.9:{system.connections.port}"
        await until_logged(
            log,
            f"{system.registrar.at.url}, dialled at its Service's cluster IP {at}, cannot be "
            "reached: connection refused",
        )
        server.change(
            SERVICE, "gatewright-webhook", {"spec": {"clusterIP": "127.0.0.1"}}, NAMESPACE
        )
        await system.until(system.registered)
        (webhook,) = system.webhooks(VALIDATING)
        assert webhook["clientConfig"]["service"]["name"] == "gatewright-webhook"


async def test_a_webhook_that_does_not_answer_for_minutes_is_a_warning(
    server, client, tmp_path, monkeypatch, log
):
    """While its pods start there is no warning; then there is one, however often the webhook is probed."""
    monkeypatch.setattr(upkeep, "PROBE_AGAIN", timedelta(milliseconds=10))
    await install(client)
    async with working(server.endpoint, tmp_path) as system:
        error = f"{system.registrar.at} cannot be reached: connection reset by peer"
        await until_logged(log, error)
        assert levels(log) == ["INFO"]
        system.clock.now += 121
        await until_logged(log, error, "WARNING")
        system.mount()
        await system.until(system.registered)
    assert levels(log) == ["INFO", "WARNING"]


async def until_logged(log, error: str, level: str = "INFO") -> None:
    """Wait until a log line has this error; there is no event for it."""
    await eventually(
        lambda: (
            (level, error)
            in {(each.levelname, getattr(each, "fields", {}).get("error")) for each in log.records}
        )
    )


def levels(log) -> list[str]:
    """Return the levels of the log lines about a registrar whose webhook does not answer."""
    waiting = "not registered yet: no webhook answers"
    return [each.levelname for each in log.records if each.getMessage() == waiting]


async def test_break_glass_is_no_problem_of_readiness(system, server):
    """A process with deleted webhook configurations stays ready; with empty ones, it is not registered."""
    for resource in CONFIGURATIONS:
        server.delete(resource, NAME)
    await system.until(lambda: not any(map(system.webhooks, CONFIGURATIONS)))
    assert system.registrar.ready() is None


async def test_a_webhook_without_policies_does_not_answer(system):
    """Its response would be the error that it cannot judge yet."""
    system.policies.engine = None
    with pytest.raises(ProbeError, match="answers with 503: the policies are not loaded yet"):
        await probe(system.registrar.at, system.certificates.ca_bundle())


async def test_a_webhook_with_another_certificate_is_not_registered(system):
    """A certificate that the bundle does not verify is no proof."""
    other = issue_ca("other", datetime.now(UTC))
    with pytest.raises(ProbeError, match="cannot be reached: its certificate is not trusted"):
        await probe(system.registrar.at, other.certificate)


async def test_a_change_of_policies_changes_the_rules(system):
    """The rules follow the kinds; a webhook without rules is removed."""
    system.policies.engine = Engine([bound("a", kinds="scalable")])
    system.wake()
    await system.until(lambda: not system.webhooks(MUTATING))
    assert len(system.webhooks(VALIDATING)[0]["rules"]) > 2


@pytest.mark.parametrize(
    "field", ["caBundle", "rules", "namespaceSelector", "failurePolicy", "matchConditions"]
)
async def test_every_changed_field_is_repaired(system, server, field):
    """Whichever field it is."""
    (before,) = system.webhooks(VALIDATING)
    edited = {
        "caBundle": before | {"clientConfig": before["clientConfig"] | {"caBundle": ""}},
        "rules": before | {"rules": []},
        "namespaceSelector": before | {"namespaceSelector": {"matchLabels": {"a": "b"}}},
        "failurePolicy": before | {"failurePolicy": "Ignore"},
        "matchConditions": before | {"matchConditions": [{"name": "never", "expression": "false"}]},
    }[field]
    system.clock.go_on()
    server.change(VALIDATING, NAME, {"webhooks": [edited]})
    await system.until(lambda: system.webhooks(VALIDATING) == [edited])
    await system.until(lambda: system.webhooks(VALIDATING) == [before])


async def test_repeated_changes_are_repaired_at_most_every_two_seconds(system, server):
    """A second repair within seconds is put off; then it is made, also the second time."""
    server.requests.clear()
    for number in range(5):
        server.change(
            VALIDATING, NAME, {"webhooks": [], "metadata": {"labels": {"n": str(number)}}}
        )
        await system.until(lambda: not system.webhooks(VALIDATING))
        result = await system.registrar.reconcile(system.registrar.request)
        assert result.requeue_after <= timedelta(seconds=2)
    assert server.requests.writes == []
    for _ in range(3):
        system.clock.now += 2
        system.wake()
        await system.until(lambda: system.webhooks(VALIDATING))
        server.change(VALIDATING, NAME, {"webhooks": []})
        await system.until(lambda: not system.webhooks(VALIDATING))


async def test_webhooks_of_others_in_the_configuration_are_kept(system, server):
    """Only webhooks with names under Gatewright's domain are changed."""
    theirs = {
        "name": "validate.example.com",
        "clientConfig": {"url": "https://example.com"},
        "rules": [],
    }
    (before,) = system.webhooks(VALIDATING)
    system.clock.go_on()
    server.change(VALIDATING, NAME, {"webhooks": [theirs, before | {"rules": []}]})
    await system.until(lambda: system.webhooks(VALIDATING) == [theirs, before])


async def test_a_deleted_configuration_is_not_recreated(system, server):
    """Deleting it is the emergency exit for administrators."""
    server.delete(VALIDATING, NAME)
    await system.until(lambda: not system.webhooks(VALIDATING))
    system.clock.go_on()
    await system.registrar.reconcile(system.registrar.request)
    assert server.get(VALIDATING, NAME) is None


async def test_webhook_configurations_are_created_outside_of_a_cluster(server, client, tmp_path):
    """Outside of a cluster, nothing else creates them."""
    async with working(server.endpoint, tmp_path, creates=True) as system:
        await system.until(lambda: system.secret(NAMES.tls_secret))
        system.mount()
        system.wake()
        await system.until(system.registered)


async def test_a_correct_registration_causes_no_requests(system, server):
    """Another reconcile sends no request."""
    server.requests.clear()
    for _ in range(3):
        await system.registrar.reconcile(system.registrar.request)
        await system.certificates.reconcile(system.certificates.request)
    assert server.requests.log == []


async def test_a_deleted_serving_secret_is_recreated(system, server):
    """It has a new pair of the same authority."""
    before = system.secret(NAMES.tls_secret)
    server.delete(SECRET, NAMES.tls_secret, NAMESPACE)
    await system.until(lambda: system.secret(NAMES.tls_secret) not in ({}, before))


async def test_a_lost_authority_is_replaced_and_what_is_served_stays_trusted(system, server):
    """The caBundle keeps the old authority until the webhook serves a pair of the new one."""
    before, leaf = system.secret(NAMES.ca_secret), system.secret(NAMES.tls_secret)
    system.clock.go_on()
    server.delete(SECRET, NAMES.ca_secret, NAMESPACE)
    await system.until(lambda: system.secret(NAMES.tls_secret) != leaf)
    after = system.secret(NAMES.ca_secret)
    assert after["ca.crt"] == join(after["tls.crt"], before["tls.crt"])
    await probe(system.registrar.at, bundle_of(system.webhooks(VALIDATING)[0]))
    system.mount()
    await probe(system.registrar.at, bundle_of(system.webhooks(VALIDATING)[0]))


@pytest.mark.parametrize("name", [NAMES.ca_secret, NAMES.tls_secret])
async def test_a_secret_of_another_owner_is_never_overwritten(
    server, client, tmp_path, caplog, name
):
    """The error names the remedy; nothing is registered."""
    data = encoded(tls_crt=b"theirs", tls_key=b"theirs")
    theirs = server.create(
        SECRET, {"metadata": {"name": name, "namespace": NAMESPACE}, "data": data}
    )
    await install(client)
    async with working(server.endpoint, tmp_path) as system:
        await system.until(
            lambda: (
                f"Secret {NAMESPACE}/{name} was not created by Gatewright" in told(caplog)
                or wait_once(system)
            )
        )
        assert server.get(SECRET, name, NAMESPACE) == theirs
        assert not system.registered()


def told(caplog) -> str:
    """Return the errors in the log."""
    return " ".join(
        record.fields.get("error", "") for record in caplog.records if hasattr(record, "fields")
    )


def wait_once(system) -> bool:
    """Look again soon: a line in the log is no change of a cache."""
    asyncio.get_running_loop().call_later(0.02, system.changed.set)
    return False


async def test_a_rotation_publishes_the_new_authority_before_it_serves_its_leaf(
    server, client, tmp_path
):
    """First both authorities are trusted, then the new leaf is served; the served leaf always verifies."""
    now = datetime.now(UTC)
    old = issue_ca("old", now - timedelta(days=300))
    pair = issue_serving(old, NAMES.dns_names, [], now)
    metadata = {"namespace": NAMESPACE, "labels": LABELS}
    for name, data in (
        (
            NAMES.ca_secret,
            encoded(tls_crt=old.certificate, tls_key=old.key, ca_crt=old.certificate),
        ),
        (NAMES.tls_secret, encoded(tls_crt=pair.certificate, tls_key=pair.key)),
    ):
        server.create(SECRET, {"metadata": metadata | {"name": name}, "data": data})
    await install(client)
    for resource in CONFIGURATIONS:  # registered long ago, with the old authority
        registered = {
            "name": "validate.gatewright.io" if resource is VALIDATING else "mutate.gatewright.io",
            "clientConfig": {
                "url": "https://x",
                "caBundle": base64.b64encode(old.certificate).decode(),
            },
            "rules": [{"resources": ["deployments"]}],
        }
        server.change(resource, NAME, {"webhooks": [registered]})
    async with working(server.endpoint, tmp_path) as system:
        await system.until(
            lambda: system.secret(NAMES.tls_secret).get("tls.crt") != pair.certificate
        )
        authority, serving = system.secret(NAMES.ca_secret), system.secret(NAMES.tls_secret)
        assert authority["ca.crt"] == join(authority["tls.crt"], old.certificate)
        for resource in CONFIGURATIONS:
            assert bundle_of(system.webhooks(resource)[0]) == authority["ca.crt"]
            assert version(server, resource, NAME) < version(
                server, SECRET, NAMES.tls_secret, NAMESPACE
            )
        assert version(server, SECRET, NAMES.ca_secret, NAMESPACE) < version(
            server, VALIDATING, NAME
        )
        system.mount()
        await probe(system.registrar.at, authority["ca.crt"])
        await probe(system.registrar.at, authority["tls.crt"])
        assert (tmp_path / "tls.crt").read_bytes() == serving["tls.crt"]


def version(server, *which: str) -> int:
    """Return the resource version of an object."""
    return int(server.get(*which)["metadata"]["resourceVersion"])


async def test_rules_wait_for_an_injected_bundle(server, client, tmp_path):
    """The webhooks exist so that the caBundle can be injected; the rules follow when it verifies the server."""
    authority = issue_ca("theirs", datetime.now(UTC))
    pair = issue_serving(authority, NAMES.dns_names, [], datetime.now(UTC))
    await install(client)
    async with working(server.endpoint, tmp_path, own_certificates=False) as system:
        (tmp_path / "tls.crt").write_bytes(pair.certificate)
        (tmp_path / "tls.key").write_bytes(pair.key)
        system.certificate.refresh()
        await system.until(lambda: system.webhooks(VALIDATING) and system.webhooks(MUTATING))
        assert not system.registered()
        injected = base64.b64encode(authority.certificate).decode()
        for resource in CONFIGURATIONS:
            (webhook,) = system.webhooks(resource)
            config = webhook["clientConfig"] | {"caBundle": injected}
            server.change(resource, NAME, {"webhooks": [webhook | {"clientConfig": config}]})
        await system.until(system.registered)
        assert {bundle_of(system.webhooks(resource)[0]) for resource in CONFIGURATIONS} == {
            authority.certificate
        }


@pytest.mark.controlplane
async def test_a_real_api_server_asks_the_webhook_that_was_registered(empty_plane, tmp_path):
    """The configurations are filled, a review arrives, and the stored configurations equal the desired ones."""
    namespaces = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
    deployments = Resource("apps", "v1", "deployments", "Deployment")
    # nothing but the rights we install
    await asyncio.to_thread(empty_plane.kubectl, "apply", "-f", "config/rbac")
    ours = await asyncio.to_thread(
        empty_plane.service_account_kubeconfig, NAMESPACE, "gatewright-controller-manager"
    )
    endpoint = await load(ours)
    async with Client(await load(empty_plane.kubeconfig)) as client:
        await client.create(namespaces, {"metadata": {"name": "shop"}})
        await install(client)
        async with working(endpoint, tmp_path) as system:
            await system.until(lambda: system.secret(NAMES.tls_secret))
            system.mount()
            system.wake()
            await system.until(system.registered)
            assert await asyncio.to_thread(created, empty_plane, "shop") == 0
            reviews = system.metrics.reviews
            assert reviews("validate", "CREATE", "allowed")._value.get() == 1
            versions = {
                each: system.registrar.caches[each, NAME].get(NAME)["metadata"]["resourceVersion"]
                for each in CONFIGURATIONS
            }
            system.clock.go_on()
            await system.registrar.reconcile(system.registrar.request)
            for resource in CONFIGURATIONS:
                assert (await client.get(resource, NAME))["metadata"][
                    "resourceVersion"
                ] == versions[resource]
            assert await asyncio.to_thread(created, empty_plane, NAMESPACE) == 0
            assert reviews("validate", "CREATE", "allowed")._value.get() == 1
            await client.get(deployments, "web", "shop")


def created(plane, namespace: str) -> int:
    """Create a Deployment with kubectl, and return its exit code."""
    command = ("create", "deployment", "web", "--image=nginx", "--namespace", namespace)
    try:
        return plane.kubectl(*command).returncode
    except subprocess.CalledProcessError as error:
        return error.returncode
