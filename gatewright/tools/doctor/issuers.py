"""Find who issued a certificate, and the command with which the issuer renews it."""

import shlex
from collections.abc import Sequence

from config.api.meta import ObjectMeta
from gatewright.tools.doctor.callers import Caller
from gatewright.tools.doctor.hazards import NAME, kubectl
from gatewright.tools.doctor.models import ClusterObject, TlsSecret
from gatewright.tools.doctor.state import ClusterState

INJECT_CERTIFICATE = "cert-manager.io/inject-ca-from"
INJECTED = (
    INJECT_CERTIFICATE,
    "cert-manager.io/inject-ca-from-secret",
    "cert-manager.io/inject-apiserver-ca",
    "service.beta.openshift.io/inject-cabundle",
    "service.alpha.openshift.io/inject-cabundle",
)
# Annotations and labels of Secrets that tell who issued the certificate.
CERTIFICATE = "cert-manager.io/certificate-name"
OPENSHIFT_SERVICE = "service.beta.openshift.io/originating-service-name"
HELM_RELEASE = "meta.helm.sh/release-name"
ISSUERS = (CERTIFICATE, OPENSHIFT_SERVICE, HELM_RELEASE)
KYVERNO = ("webhook.kyverno.io/managed-by", "kyverno")
GATEKEEPER = ("gatekeeper.sh/system", "yes")


def injector(metadata: ObjectMeta) -> str:
    """Return the annotation that makes a program set an object's CA bundle; "" if there is none."""
    return next((key for key in INJECTED if key in metadata.annotations), "")


def renewal(
    caller: Caller, secrets: Sequence[TlsSecret], state: ClusterState, otherwise: str
) -> tuple[str, str]:
    """Return how the issuer of a server's certificate renews it, and the command, if one does."""
    subject, service = caller.subject.metadata, caller.config.service
    if certificate := subject.annotations.get(INJECT_CERTIFICATE):
        return _certificate(*certificate.split("/", 1))
    for secret in secrets:
        metadata = secret.metadata
        if name := metadata.annotations.get(CERTIFICATE):
            return _certificate(metadata.namespace, name)
        if OPENSHIFT_SERVICE in metadata.annotations:
            fix = f"delete the {secret.title}, so that OpenShift's service CA issues it again"
            return fix, kubectl("delete", secret)
        if release := metadata.annotations.get(HELM_RELEASE):
            return (
                f"the Helm release {release}, which has the {secret.title}, has to {otherwise}",
                "",
            )
    workloads = state.serving(service) if service else []
    if service and KYVERNO in subject.labels.items():
        names = [f"{service.server_name}.kyverno-tls-{part}" for part in ("ca", "pair")]
        words = ("kubectl", "delete", "secret", *names, "--namespace", service.namespace)
        is_named = all(map(NAME.fullmatch, (*names, service.namespace)))
        fix = "delete Kyverno's Secrets, so that it issues them again"
        return fix, shlex.join(words) if is_named else ""
    if workloads and GATEKEEPER in subject.labels.items():
        fix = "restart Gatekeeper, which issues its certificate when it starts"
        return fix, kubectl("rollout restart", workloads[0])
    return f"the installer of {service or caller.config.url} has to {otherwise}", ""


def _certificate(namespace: str, name: str) -> tuple[str, str]:
    certificate = ClusterObject(
        kind="Certificate", metadata=ObjectMeta(namespace=namespace, name=name)
    )
    fix = f"cert-manager has to renew and inject the {certificate.title}: find out why it does not"
    return fix, kubectl("describe", certificate)
