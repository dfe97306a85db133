"""Check that CA bundles verify the servers that the API server calls."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from certs.check import check_served
from certs.pair import CertificateError, read_certificates
from gatewright.doctor.backends import Caller, callers
from gatewright.doctor.hazards import CRITICAL, WARNING, Hazard
from gatewright.doctor.models import ServiceReference, TlsSecret
from gatewright.doctor.state import ClusterState

EXPIRES_SOON = timedelta(days=14)
INJECTED = (
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "cert-manager.io/inject-apiserver-ca",
    "service.beta.openshift.io/inject-cabundle",
)

# The PEM certificates that servers present, by server name.
ServedCertificates = Mapping[str, bytes]


def check(
    state: ClusterState, now: datetime, served: ServedCertificates | None = None
) -> Iterator[Hazard]:
    """Yield a finding for each bundle that does not verify its server, or soon will not.

    `served` are the certificates of probed servers. For other servers, the certificates in the
    Secrets that their pods mount are checked.
    """
    for caller in callers(state):
        if not caller.verifies:
            yield _finding(
                caller,
                "unverified",
                WARNING,
                "the API server does not verify the server (insecureSkipTLSVerify): any "
                "pod that answers for the Service reads and changes these requests",
                "set caBundle and remove insecureSkipTLSVerify",
            )
            continue
        yield from _checked(caller, state, now, served or {})


def _checked(
    caller: Caller, state: ClusterState, now: datetime, served: ServedCertificates
) -> Iterator[Hazard]:
    failing = CRITICAL if caller.is_fatal else WARNING
    if not caller.config.ca_bundle:
        is_set_later = _is_injected(caller) or not state.is_live
        if caller.config.service is not None and not is_set_later:
            yield _finding(
                caller,
                "ca-bundle-empty",
                failing,
                "caBundle is empty, so the API server verifies with its machine's authorities, "
                f"which sign no name under .svc: {caller.fails}",
                "set caBundle to the authority of the serving certificate",
            )
        return
    try:
        bundle = base64.b64decode(caller.config.ca_bundle, validate=True)
        authorities = read_certificates(bundle, "CA bundle")
    except (CertificateError, binascii.Error) as error:
        yield _finding(
            caller,
            "ca-bundle-invalid",
            failing,
            f"caBundle cannot be read ({error}), so {caller.fails}",
            "set caBundle to the authority of the serving certificate, as PEM in base64",
        )
        return
    last = max(each.not_valid_after_utc for each in authorities)
    if last <= now:
        yield _finding(
            caller,
            "ca-bundle-expired",
            failing,
            f"every authority in caBundle has expired, the last one at {last:%Y-%m-%d %H:%M} UTC, "
            f"so {caller.fails}",
            "renew the authority and set caBundle",
        )
    elif last - now < EXPIRES_SOON:
        yield _finding(
            caller,
            "ca-bundle-expiring",
            WARNING,
            f"the last authority in caBundle expires at {last:%Y-%m-%d %H:%M} UTC. From then on "
            f"{caller.fails}",
            "renew the authority and set caBundle",
        )
    if last > now:
        yield from _presented(caller, bundle, state, now, served)


def _presented(
    caller: Caller, bundle: bytes, state: ClusterState, now: datetime, served: ServedCertificates
) -> Iterator[Hazard]:
    service = caller.config.service
    name = service.server_name if service else urlsplit(caller.config.url).hostname or ""
    mounted = _mounted(service, state) if service else iter(())
    chains = [("the server", served[name])] if name in served else list(mounted)
    faults = list[str]()
    for source, chain in chains:
        try:
            check_served(chain, bundle, name, now)
        except CertificateError as error:
            faults.append(f"{source}: {error}")
    if faults and len(faults) == len(chains):
        yield _finding(
            caller,
            "certificate",
            CRITICAL if caller.is_fatal else WARNING,
            f"caBundle does not verify the certificate for {name} ({'; '.join(faults)}), so "
            f"{caller.fails}",
            "set caBundle to the authority that signed it, or issue it again",
        )


def _mounted(service: ServiceReference, state: ClusterState) -> Iterator[tuple[str, bytes]]:
    """Yield the certificates of the TLS Secrets that the pods behind a Service mount."""
    names = dict.fromkeys(
        volume.secret.secret_name
        for workload in state.serving(service)
        for volume in workload.spec.template.spec.volumes
        if volume.secret is not None
    )
    for name in names:
        secret = state.find("", "Secret", service.namespace, name)
        if isinstance(secret, TlsSecret) and secret.data.certificate:
            try:
                yield f"Secret {name}", base64.b64decode(secret.data.certificate, validate=True)
            except binascii.Error:
                continue


def _is_injected(caller: Caller) -> bool:
    return any(each in caller.subject.metadata.annotations for each in INJECTED)


def _finding(caller: Caller, name: str, level: str, message: str, fix: str) -> Hazard:
    return Hazard(
        check=name,
        subject=caller.subject,
        level=level,
        path=f"{caller.path}.caBundle" if name != "certificate" else caller.path,
        message=message,
        fix=fix,
    )


def endpoints(state: ClusterState) -> list[tuple[str, int, str]]:
    """Return the servers to probe for certificates, each once: address, port and server name."""
    found = list[tuple[str, int, str]]()
    for caller in callers(state):
        if service := caller.config.service:
            stored = state.service(service)
            if stored is not None and stored.spec.cluster_ip not in ("", "None"):
                found.append((stored.spec.cluster_ip, service.port, service.server_name))
        elif caller.config.url:
            url = urlsplit(caller.config.url)
            found.append((url.hostname or "", url.port or 443, url.hostname or ""))
    return list(dict.fromkeys(found))
