"""The probe of a webhook: asks it for a review as the API server would."""

import asyncio
import ssl

import aiohttp

from kube.session import new_session, reason_of

PROBE_SECONDS = 5.0
PROBE = {"group": "gatewright.io", "version": "v1alpha1"}
REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "probe",
        "operation": "CONNECT",
        "kind": PROBE | {"kind": "Probe"},
        "resource": PROBE | {"resource": "probes"},
    },
}


class ProbeError(Exception):
    """The webhook does not answer as it should; the text has the address and the reason."""


async def probe(url: str, ca_bundle: bytes) -> None:
    """Post a review of nothing over TLS that `ca_bundle` verifies.

    ProbeError unless it is allowed, or refused because the webhook wants a client certificate,
    which the API server has.
    """
    try:
        trusts = ssl.create_default_context(cadata=ca_bundle.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise ProbeError(f"{url}: the CA bundle cannot be read: {error}") from error
    address = f"{url.rstrip('/')}/validate"
    try:
        async with (
            asyncio.timeout(PROBE_SECONDS),
            new_session({"User-Agent": "gatewright"}) as session,
            session.post(address, json=REVIEW, ssl=trusts, allow_redirects=False) as response,
        ):
            status, answer = response.status, await response.read()
    except (aiohttp.ClientError, OSError) as error:
        raise ProbeError(f"{url} cannot be reached: {reason_of(error, PROBE_SECONDS)}") from error
    is_allowed = status == 200 and b'"allowed":true' in answer
    if not is_allowed and not (status == 403 and b"client certificate" in answer):
        raise ProbeError(
            f"{url} answers with {status}: {answer[:200].decode('utf-8', 'replace').strip()}"
        )
