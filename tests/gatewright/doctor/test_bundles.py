"""CA bundles: whether the API server can verify the backend."""

from datetime import timedelta

from certs import issue_ca
from tests.gatewright.doctor.clusters import (
    CA,
    NOW,
    backend,
    configuration,
    encoded,
    findings,
    found,
    serving_pair,
    webhook,
)

OTHER = issue_ca("another authority", NOW)
OLD = issue_ca("expired authority", NOW - timedelta(days=40), timedelta(days=30))
ENDING = issue_ca("ending authority", NOW - timedelta(days=20), timedelta(days=30))


def trusting(bundle: str, **metadata: object):
    """Return a configuration with another CA bundle."""
    judge = webhook()
    judge["clientConfig"] = judge["clientConfig"] | {"caBundle": bundle}
    found = configuration(judge)
    found["metadata"] |= metadata
    return found


def test_an_empty_bundle_is_a_fault_unless_something_injects_it():
    """The API server then trusts its machine's authorities, which sign no Service."""
    assert found(trusting(""), *backend()) == [("critical", "ca-bundle-empty")]
    injected = {"cert-manager.io/inject-ca-from": "guard/guard"}
    assert found(trusting("", annotations=injected), *backend()) == []


def test_a_bundle_that_cannot_be_read():
    """Base64 of other data, and invalid base64, are reported."""
    assert found(trusting("Zm9v"), *backend()) == [("critical", "ca-bundle-invalid")]
    assert found(trusting("%"), *backend()) == [("critical", "ca-bundle-invalid")]


def test_a_bundle_that_expired():
    """The finding has the time of expiry."""
    (finding,) = findings(trusting(encoded(OLD.certificate)), *backend())
    assert (finding.level, finding.check) == ("critical", "ca-bundle-expired")
    assert finding.message == (
        "every authority in caBundle has expired, the last one at 2026-05-22 00:00 UTC, so every "
        "request that pods.guard.example.com judges is refused"
    )


def test_a_bundle_that_expires_soon_is_a_warning():
    """Two weeks before."""
    both = encoded(CA.certificate + ENDING.certificate)
    assert found(trusting(both), *backend()) == []
    pair = serving_pair(ca=ENDING)
    secret = {"metadata": {"namespace": "guard", "name": "guard"}}
    stored = secret | {
        "apiVersion": "v1",
        "kind": "Secret",
        "data": {"tls.crt": encoded(pair.certificate)},
    }
    cluster = [each for each in backend() if each["kind"] != "Secret"]
    assert found(trusting(encoded(ENDING.certificate)), stored, *cluster) == [
        ("warning", "ca-bundle-expiring")
    ]


def test_a_bundle_of_another_authority_than_the_mounted_certificate():
    """The pods serve the certificate of the Secret that they mount."""
    (finding,) = findings(trusting(encoded(OTHER.certificate)), *backend())
    assert (finding.level, finding.check) == ("critical", "certificate")
    assert finding.message.startswith(
        "caBundle does not verify the certificate for guard.guard.svc (Secret guard: the "
        "certificate is not verified by the CA bundle"
    )


def test_the_certificate_that_a_server_presents_decides():
    """The certificate that a probe got is checked, not the one in the Secret."""
    mine = trusting(encoded(OTHER.certificate))
    right = serving_pair(ca=OTHER).certificate
    assert findings(mine, *backend(), served={"guard.guard.svc": right}) == []
    name = serving_pair("other.guard.svc").certificate
    (finding,) = findings(
        trusting(encoded(CA.certificate)), *backend(), served={"guard.guard.svc": name}
    )
    assert "the certificate is for other.guard.svc, not for guard.guard.svc" in finding.message
