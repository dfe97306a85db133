"""The probe of a webhook: asks it for a review as the API server would."""

import asyncio
import ssl

import aiohttp
from yarl import URL

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


async def probe(url: str, ca_bundle: bytes, cluster_ip: str | None = None) -> None:
    """Post a review of nothing over TLS that `ca_bundle` verifies.

    With a `cluster_ip`, dial that for the host of `url`, as the API server does for a Service: no
    DNS is asked. ProbeError unless the review is allowed, or refused because the webhook wants a
    client certificate, which the API server has.
    """
    try:
        trusts = ssl.create_default_context(cadata=ca_bundle.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise ProbeError(f"{url}: the CA bundle cannot be read: {error}") from error
    named = dialled = URL(f"{url.rstrip('/')}/validate")
    where = url
    if cluster_ip is not None:
        dialled = named.with_host(cluster_ip)
        where = f"{url}, dialled at its Service's cluster IP {dialled.authority},"
    try:
        async with (
            asyncio.timeout(PROBE_SECONDS),
            new_session({"User-Agent": "gatewright", "Host": named.authority}) as session,
            session.post(
                dialled,
                json=REVIEW,
                ssl=trusts,
                server_hostname=named.host,
                allow_redirects=False,
            ) as response,
        ):
            status, answer = response.status, await response.read()
    except (aiohttp.ClientError, OSError) as error:
        reason = reason_of(error, PROBE_SECONDS)
        raise ProbeError(f"{where} cannot be reached: {reason}") from error
    is_allowed = status == 200 and b'"allowed":true' in answer
    if not is_allowed and not (status == 403 and b"client certificate" in answer):
        said = answer[:200].decode("utf-8", "replace").strip()
        raise ProbeError(f"{where} answers with {status}: {said}")
