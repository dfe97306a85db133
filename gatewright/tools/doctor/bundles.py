"""Check that CA bundles verify the servers that the API server calls."""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from certs.check import check_served, is_for
from certs.pair import CertificateError, read_certificates
from gatewright.tools.doctor.callers import Caller, callers
from gatewright.tools.doctor.hazards import WARNING, Hazard, ObjectPatch, kubectl
from gatewright.tools.doctor.issuers import injector, renewal
from gatewright.tools.doctor.models import ServiceReference, TlsSecret
from gatewright.tools.doctor.state import ClusterState

EXPIRES_SOON = timedelta(days=14)

# The PEM certificates that servers present, by server name.
ServedCertificates = Mapping[str, bytes]
Remedy = tuple[str, ObjectPatch, str]  # the fix, a patch of the caller, or a command


def check(
    state: ClusterState, now: datetime, served: ServedCertificates | None = None
) -> Iterator[Hazard]:
    """Yield a finding for each bundle that does not verify its server, or soon will not.

    `served` are the certificates of probed servers. For other servers, the certificates in the
    Secrets that their pods mount are checked.
    """
    for caller in callers(state):
        if caller.verifies:
            yield from Verification(caller, state, now, served or {}).check()
        else:
            yield caller.hazard(
                "unverified",
                WARNING,
                "the API server does not verify the server (insecureSkipTLSVerify): any "
                "pod that answers for the Service reads and changes these requests",
                "set caBundle and remove insecureSkipTLSVerify",
            )


@dataclass(frozen=True, slots=True)
class Verification:
    """The check of one bundle, at a time."""

    caller: Caller
    state: ClusterState
    now: datetime
    served: ServedCertificates

    def check(self) -> Iterator[Hazard]:
        """Yield a finding if the bundle does not verify the server, or soon will not."""
        caller = self.caller
        if injector(caller.subject.metadata) and not self.state.is_live:
            return  # what the files have is replaced in the cluster
        if not decode_base64(caller.config.ca_bundle, otherwise=b"?").strip():
            yield from self._empty()
            return
        set_bundle = "set caBundle to the authority of the serving certificate, as PEM in base64"
        try:
            bundle = base64.b64decode(caller.config.ca_bundle, validate=True)
            last = _expiry(bundle)
        except ValueError as error:
            message = f"caBundle cannot be read ({error}), so {caller.fails}"
            yield self._hazard("invalid", caller.level, message, self._fix(set_bundle))
            return
        if last <= self.now:
            message = (
                "every authority in caBundle has expired, the last one at "
                f"{last:%Y-%m-%d %H:%M} UTC, so {caller.fails}"
            )
            yield self._hazard("expired", caller.level, message, self._renewal())
            return
        if last - self.now < EXPIRES_SOON:
            message = (
                f"the last authority in caBundle expires at {last:%Y-%m-%d %H:%M} UTC. From then "
                f"on {caller.fails}"
            )
            yield self._hazard("expiring", WARNING, message, self._renewal())
        yield from self._certificate(bundle)

    def _empty(self) -> Iterator[Hazard]:
        caller = self.caller
        if caller.config.service is None or not self.state.is_live:
            return  # the machine's authorities may verify a URL; files get their bundle later
        injected = injector(caller.subject.metadata)
        fix = self._fix("set caBundle to the authority of the serving certificate")
        message = (
            "caBundle is empty, so the API server verifies with its machine's authorities, which "
            f"sign no name under .svc: {caller.fails}"
        )
        if injected:
            message = f"caBundle is empty, although {injected} asks for one: {caller.fails}"
            fix = self._renewal()
        yield self._hazard("empty", caller.level, message, fix)

    def _certificate(self, bundle: bytes) -> Iterator[Hazard]:
        chains, name = self._chains(), self._name
        faults = {source: self._fault(chain, bundle) for source, chain in chains.items()}
        if not faults or not all(faults.values()):
            return
        otherwise = "set caBundle to the authority that signed it, or issue it again"
        remedy = self._restart(bundle) or self._renewal(otherwise)
        reasons = "; ".join(f"{source}: {fault}" for source, fault in faults.items())
        yield self.caller.hazard(
            "certificate",
            self.caller.level,
            f"caBundle does not verify the certificate for {name} ({reasons}), so "
            f"{self.caller.fails}",
            *remedy,
        )

    def _restart(self, bundle: bytes) -> Remedy | None:
        """Return the fix of a server that presents another certificate than its pods mount."""
        service = self.caller.config.service
        if service is None or self._name not in self.served:
            return None
        for secret in self._secrets():
            if not self._fault(decode_base64(secret.certificate), bundle):
                mounted = f"the {secret.title}, which they mount"
                fix = f"restart its pods: {mounted}, has a valid certificate"
                return fix, (), kubectl("rollout restart", self.state.serving(service)[0])
        return None

    def _hazard(self, fault: str, level: str, message: str, remedy: Remedy) -> Hazard:
        return self.caller.hazard(f"ca-bundle-{fault}", level, message, *remedy)

    @property
    def _name(self) -> str:
        return self.caller.config.server_name

    def _secrets(self) -> list[TlsSecret]:
        service = self.caller.config.service
        return mounted_secrets(service, self.state) if service else []

    def _chains(self) -> dict[str, bytes]:
        """Return the certificates that the server presents, or may present, by their source."""
        if self._name in self.served:
            return {"the server": self.served[self._name]}
        return {
            f"Secret {secret.metadata.name}": chain
            for secret in self._secrets()
            if is_for(chain := decode_base64(secret.certificate), self._name)
        }

    def _fault(self, chain: bytes, bundle: bytes) -> str:
        """Return why a client that trusts a bundle rejects a certificate; "" if it does not."""
        try:
            check_served(chain, bundle, self._name, self.now)
        except CertificateError as error:
            return str(error)
        return ""

    def _fix(self, otherwise: str, run: str = "") -> Remedy:
        """Return the fix that sets the authority beside a certificate, if that verifies it."""
        for secret in self._secrets():
            bundle = decode_base64(secret.authority)
            if any(not self._fault(chain, bundle) for chain in self._chains().values()) and (
                _expiry(bundle) - self.now >= EXPIRES_SOON
            ):
                patch = tuple(
                    {"op": "add", "path": pointer, "value": secret.authority}
                    for pointer in self.caller.bundles
                )
                return f"set caBundle to ca.crt of the {secret.title}", patch, ""
        return otherwise, (), run

    def _renewal(self, otherwise: str = "renew the authority and set caBundle") -> Remedy:
        """Return the fix by the issuer of a certificate, unless a known authority verifies it."""
        return self._fix(*renewal(self.caller, self._secrets(), self.state, otherwise))


def mounted_secrets(service: ServiceReference, state: ClusterState) -> list[TlsSecret]:
    """Return the TLS Secrets that the pods behind a Service mount."""
    volumes = [volume for each in state.serving(service) for volume in each.volumes]
    secrets = (
        state.find("", "Secret", service.namespace, name)
        for name in dict.fromkeys(volume.secret_name for volume in volumes)
    )
    return [
        secret
        for secret in secrets
        if isinstance(secret, TlsSecret) and decode_base64(secret.certificate)
    ]


def decode_base64(value: str, otherwise: bytes = b"") -> bytes:
    """Return the bytes of a base64 text, or `otherwise` if it is not base64."""
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        return otherwise


def endpoints(state: ClusterState) -> list[tuple[str, int, str]]:
    """Return the servers to probe for certificates, each once: address, port and server name."""
    addresses = list[tuple[str, int, str]]()
    for caller in callers(state):
        if service := caller.config.service:
            stored = state.service(service)
            if stored is not None and stored.cluster_ip not in ("", "None"):
                addresses.append((stored.cluster_ip, service.port, service.server_name))
        elif caller.config.url:
            name = caller.config.server_name
            addresses.append((name, urlsplit(caller.config.url).port or 443, name))
    return list(dict.fromkeys(addresses))


def _expiry(bundle: bytes) -> datetime:
    return max(each.not_valid_after_utc for each in read_certificates(bundle, "CA bundle"))
