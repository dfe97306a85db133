"""Check that CA bundles verify the servers that the API server calls."""

import base64
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from certs.check import check_served
from certs.pair import CertificateError, read_certificates
from gatewright.doctor.backends import Caller, callers
from gatewright.doctor.hazards import WARNING, Hazard, ObjectPatch
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
            yield Hazard(
                "unverified",
                WARNING,
                caller.subject,
                f"{caller.path}.caBundle",
                "the API server does not verify the server (insecureSkipTLSVerify): any "
                "pod that answers for the Service reads and changes these requests",
                "set caBundle and remove insecureSkipTLSVerify",
            )
            continue
        yield from _checked(caller, state, now, served or {})


def _checked(
    caller: Caller, state: ClusterState, now: datetime, served: ServedCertificates
) -> Iterator[Hazard]:
    path = f"{caller.path}.caBundle"
    service = caller.config.service
    name = service.server_name if service else urlsplit(caller.config.url).hostname or ""
    secrets = list(_mounted(service, state)) if service else []
    chains = {f"Secret {e.metadata.name}": _decoded(e.data.certificate) for e in secrets}
    if name in served:
        chains = {"the server": served[name]}
    known = _known_authority(caller, secrets, chains.values(), name, now)

    def fix(otherwise: str) -> tuple[str, ObjectPatch]:
        return known or (otherwise, ())

    if not caller.config.ca_bundle:
        is_set_later = _is_injected(caller) or not state.is_live
        if service is not None and not is_set_later:
            yield Hazard(
                "ca-bundle-empty",
                caller.level,
                caller.subject,
                path,
                "caBundle is empty, so the API server verifies with its machine's authorities, "
                f"which sign no name under .svc: {caller.fails}",
                *fix("set caBundle to the authority of the serving certificate"),
            )
        return
    try:
        bundle = base64.b64decode(caller.config.ca_bundle, validate=True)
        last = _expiry(bundle)
    except ValueError as error:
        yield Hazard(
            "ca-bundle-invalid",
            caller.level,
            caller.subject,
            path,
            f"caBundle cannot be read ({error}), so {caller.fails}",
            *fix("set caBundle to the authority of the serving certificate, as PEM in base64"),
        )
        return
    if last <= now:
        yield Hazard(
            "ca-bundle-expired",
            caller.level,
            caller.subject,
            path,
            f"every authority in caBundle has expired, the last one at {last:%Y-%m-%d %H:%M} UTC, "
            f"so {caller.fails}",
            *fix("renew the authority and set caBundle"),
        )
        return
    if last - now < EXPIRES_SOON:
        yield Hazard(
            "ca-bundle-expiring",
            WARNING,
            caller.subject,
            path,
            f"the last authority in caBundle expires at {last:%Y-%m-%d %H:%M} UTC. From then on "
            f"{caller.fails}",
            *fix("renew the authority and set caBundle"),
        )
    faults = [
        f"{source}: {fault}"
        for source, chain in chains.items()
        if (fault := _fault(chain, bundle, name, now))
    ]
    if faults and len(faults) == len(chains):
        yield Hazard(
            "certificate",
            caller.level,
            caller.subject,
            caller.path,
            f"caBundle does not verify the certificate for {name} ({'; '.join(faults)}), so "
            f"{caller.fails}",
            *fix("set caBundle to the authority that signed it, or issue it again"),
        )


def _known_authority(
    caller: Caller,
    secrets: Iterable[TlsSecret],
    chains: Collection[bytes],
    name: str,
    now: datetime,
) -> tuple[str, ObjectPatch] | None:
    """Return the fix that sets an authority beside a certificate, if it verifies what is served."""
    for each in secrets:
        bundle = _decoded(each.data.authority)
        if any(not _fault(chain, bundle, name, now) for chain in chains) and (
            _expiry(bundle) - now >= EXPIRES_SOON
        ):
            patch = {"op": "add", "path": caller.bundle_path, "value": each.data.authority}
            return f"set caBundle to ca.crt of the {each.title}", (patch,)
    return None


def _fault(chain: bytes, bundle: bytes, name: str, now: datetime) -> str:
    """Return why a client that trusts a bundle rejects a certificate; "" if it does not."""
    try:
        check_served(chain, bundle, name, now)
    except CertificateError as error:
        return str(error)
    return ""


def _expiry(bundle: bytes) -> datetime:
    return max(each.not_valid_after_utc for each in read_certificates(bundle, "CA bundle"))


def _mounted(service: ServiceReference, state: ClusterState) -> Iterator[TlsSecret]:
    """Yield the TLS Secrets that the pods behind a Service mount."""
    workloads = state.serving(service)
    for name in dict.fromkeys(name for each in workloads for name in each.secret_names):
        secret = state.find("", "Secret", service.namespace, name)
        if isinstance(secret, TlsSecret) and _decoded(secret.data.certificate):
            yield secret


def _decoded(value: str) -> bytes:
    """Return the bytes of a base64 text; empty if it is not base64."""
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        return b""


def _is_injected(caller: Caller) -> bool:
    return any(each in caller.subject.metadata.annotations for each in INJECTED)


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
