"""CA bundles: whether the API server can verify the backend."""

from datetime import timedelta

import jsonpatch
import pytest

from certs import issue_ca, issue_serving
from config.documents import Document
from gatewright.tools.doctor import diagnose
from gatewright.tools.doctor.state import ClusterState
from tests.gatewright.tools.doctor.clusters import (
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
MEANWHILE = (
    ", and meanwhile let requests pass unchecked: kubectl patch validatingwebhookconfiguration "
    'guard --type=json -p \'[{"op": "add", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]\''
)


def trusting(bundle: str, **metadata: object):
    """Return a configuration with another CA bundle."""
    judge = webhook()
    judge["clientConfig"] = judge["clientConfig"] | {"caBundle": bundle}
    found = configuration(judge)
    found["metadata"] |= metadata
    return found


def test_an_empty_bundle_is_a_fault():
    """The API server then trusts its machine's authorities, which sign no Service."""
    assert found(trusting(""), *backend()) == [("critical", "ca-bundle-empty")]


def test_a_bundle_that_is_not_injected():
    """The finding names the Certificate whose state tells why; files have no bundle yet."""
    injected = {"cert-manager.io/inject-ca-from": "guard/serving"}
    subject = trusting("", annotations=injected)
    (finding,) = findings(subject, *backend())
    assert (finding.level, finding.check) == ("critical", "ca-bundle-empty")
    assert finding.message == (
        "caBundle is empty, although cert-manager.io/inject-ca-from asks for one: every request "
        "that pods.guard.example.com judges is refused"
    )
    assert finding.remedy == (
        "cert-manager has to renew and inject the Certificate guard/serving: find out why it does "
        "not: kubectl describe certificate serving --namespace guard"
    )
    assert of_files(subject, *backend()) == []


def of_files(*objects):
    """Return the findings about objects of files."""
    files = ClusterState()
    assert not files.read(map(Document.of_object, objects))
    return diagnose(files, NOW)


@pytest.mark.parametrize(
    "annotation",
    [
        "cert-manager.io/inject-ca-from",
        "cert-manager.io/inject-ca-from-secret",
        "cert-manager.io/inject-apiserver-ca",
        "service.beta.openshift.io/inject-cabundle",
        "service.alpha.openshift.io/inject-cabundle",
    ],
)
@pytest.mark.parametrize("bundle", ["", "Cg==", "Zm9v", encoded(OLD.certificate)])
@pytest.mark.parametrize("caller", range(3))
def test_a_bundle_of_files_that_is_injected_is_not_judged(caller, bundle, annotation):
    """A program replaces what the files have; in a cluster it is judged."""
    subject = calling(bundle)[caller]
    subject["metadata"] = subject["metadata"] | {"annotations": {annotation: "guard/serving"}}
    assert of_files(subject, *backend()) == []
    assert [each.level for each in findings(subject, *backend())] == ["critical"]


@pytest.mark.parametrize("caller", range(3))
def test_a_bundle_of_only_whitespace_is_empty(caller):
    """Cg== is a line break, a usual placeholder: files get their bundle later."""
    subject = calling("Cg==")[caller]
    assert of_files(subject, *backend()) == []
    assert [each.check for each in findings(subject, *backend())] == ["ca-bundle-empty"]


def test_a_bundle_that_cannot_be_read():
    """Base64 of other data, and invalid base64, are reported."""
    assert found(trusting("Zm9v"), *backend()) == [("critical", "ca-bundle-invalid")]
    assert found(trusting("%"), *backend()) == [("critical", "ca-bundle-invalid")]
    assert found(trusting("ü"), *backend()) == [("critical", "ca-bundle-invalid")]


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


def test_a_mounted_certificate_for_another_server_tells_nothing():
    """The pods may mount certificates for their metrics, or as clients."""
    cluster = backend()
    pair = serving_pair("metrics.guard.svc", OTHER)
    cluster[-1]["data"]["tls.crt"] = encoded(pair.certificate)
    assert found(trusting(encoded(CA.certificate)), *cluster) == []


def with_authority(authority):
    """Return what answers, with an authority beside the certificate that its pods mount."""
    cluster = backend()
    cluster[-1]["data"]["ca.crt"] = encoded(authority)
    return cluster


def calling(bundle):
    """Return a webhook, a conversion and an aggregated API that trust a bundle."""
    service = {"namespace": "guard", "name": "guard", "port": 443}
    config = {"service": service, "caBundle": bundle}
    names = {"plural": "gadgets", "kind": "Gadget"}
    versions = [{"name": "v1"}, {"name": "v2"}]
    conversion = {"strategy": "Webhook", "webhook": {"clientConfig": config}}
    return [
        trusting(bundle),
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "gadgets.example.com"},
            "spec": {
                "group": "example.com",
                "names": names,
                "versions": versions,
                "conversion": conversion,
            },
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": "v1.example.com"},
            "spec": {"group": "example.com", "version": "v1", **config},
        },
    ]


@pytest.mark.parametrize(
    ("bundle", "check"),
    [
        ("", "ca-bundle-empty"),
        ("Zm9v", "ca-bundle-invalid"),
        (encoded(OLD.certificate), "ca-bundle-expired"),
        (encoded(OTHER.certificate), "certificate"),
    ],
)
@pytest.mark.parametrize("caller", range(3))
def test_an_authority_beside_the_certificate_fixes_the_bundle(caller, bundle, check):
    """The patch sets ca.crt of the Secret, and then nothing is found."""
    subject, cluster = calling(bundle)[caller], with_authority(CA.certificate)
    (finding,) = findings(subject, *cluster)
    assert (finding.level, finding.check) == ("critical", check)
    assert finding.fix == "set caBundle to ca.crt of the Secret guard/guard"
    assert found(jsonpatch.apply_patch(subject, finding.patch), *cluster) == []


def test_a_bundle_that_ends_soon_is_replaced_by_the_next_authority():
    """Both sign the same name; the old one is still valid."""
    (subject, *_), cluster = calling(encoded(ENDING.certificate)), with_authority(CA.certificate)
    cluster[-1]["data"]["tls.crt"] = encoded(serving_pair(ca=CA).certificate)
    both = findings(subject, *cluster)
    assert sorted(each.check for each in both) == ["ca-bundle-expiring", "certificate"]
    for finding in both:
        assert found(jsonpatch.apply_patch(subject, finding.patch), *cluster) == []


@pytest.mark.parametrize("authority", [OTHER.certificate, OLD.certificate, b"", b"x"])
def test_an_authority_that_does_not_verify_is_no_fix(authority):
    """The command only lets the requests pass meanwhile."""
    (finding,) = findings(trusting(encoded(OLD.certificate)), *with_authority(authority))
    assert finding.remedy == (
        f"the installer of guard/guard has to renew the authority and set caBundle{MEANWHILE}"
    )


EXPIRED = issue_serving(OLD, ["guard.guard.svc"], [], NOW - timedelta(days=39)).certificate


@pytest.mark.parametrize(
    ("labels", "annotations", "remedy"),
    [
        (
            {},
            {"cert-manager.io/certificate-name": "serving"},
            "cert-manager has to renew and inject the Certificate guard/serving: find out why it "
            "does not: kubectl describe certificate serving --namespace guard",
        ),
        (
            {},
            {"service.beta.openshift.io/originating-service-name": "guard"},
            "delete the Secret guard/guard, so that OpenShift's service CA issues it again: "
            "kubectl delete secret guard --namespace guard",
        ),
        (
            {},
            {"meta.helm.sh/release-name": "guard"},
            "the Helm release guard, which has the Secret guard/guard, has to renew the authority "
            f"and set caBundle{MEANWHILE}",
        ),
        (
            {"webhook.kyverno.io/managed-by": "kyverno"},
            {},
            "delete Kyverno's Secrets, so that it issues them again: kubectl delete secret "
            "guard.guard.svc.kyverno-tls-ca guard.guard.svc.kyverno-tls-pair --namespace guard",
        ),
        (
            {"gatekeeper.sh/system": "yes"},
            {},
            "restart Gatekeeper, which issues its certificate when it starts: kubectl rollout "
            "restart deployment guard --namespace guard",
        ),
        (
            {},
            {},
            f"the installer of guard/guard has to renew the authority and set caBundle{MEANWHILE}",
        ),
    ],
    ids=["cert-manager", "OpenShift", "Helm", "Kyverno", "Gatekeeper", "unknown"],
)
def test_who_renews_an_expired_authority(labels, annotations, remedy):
    """The issuer is known by its marks; a command is printed where it makes the issuer act."""
    cluster = backend()
    cluster[-1]["metadata"] = cluster[-1]["metadata"] | {"annotations": annotations}
    (finding,) = findings(trusting(encoded(OLD.certificate), labels=labels), *cluster)
    assert (finding.check, finding.remedy) == ("ca-bundle-expired", remedy)


def test_a_server_that_presents_an_old_certificate_is_restarted():
    """Its pods mount a valid one."""
    subject = trusting(encoded(CA.certificate))
    (finding,) = findings(subject, *backend(), served={"guard.guard.svc": EXPIRED})
    assert finding.remedy == (
        "restart its pods: the Secret guard/guard, which they mount, has a valid certificate: "
        "kubectl rollout restart deployment guard --namespace guard"
    )


def test_webhooks_of_one_server_are_one_finding():
    """Its patch sets every bundle."""
    one, other = (webhook(name=f"{name}.example.com") for name in ("a", "b"))
    for changed in (one, other):
        changed["clientConfig"] = changed["clientConfig"] | {"caBundle": "Zm9v"}
    subject, cluster = configuration(one, other), with_authority(CA.certificate)
    (finding,) = findings(subject, *cluster)
    assert finding.message.endswith(
        "so every request that a.example.com and b.example.com judge is refused"
    )
    assert found(jsonpatch.apply_patch(subject, finding.patch), *cluster) == []


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
