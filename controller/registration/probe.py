"""Probes a webhook: sends it an AdmissionReview as the API server would."""

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
    """The webhook does not answer correctly; the message has the address and the reason."""


async def probe(url: str, ca_bundle: bytes, cluster_ip: str | None = None) -> None:
    """Post a review of a kind that no policy judges, over TLS that `ca_bundle` verifies.

    With a `cluster_ip`, connect to it instead of resolving the host of `url`, as the API server
    does for a Service. Raises ProbeError unless the review is allowed, or rejected because the
    webhook requires a client certificate, which the API server has.
    """
    try:
        trusts = ssl.create_default_context(cadata=ca_bundle.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise ProbeError(f"{url}: the CA bundle cannot be read: {error}") from error
    service_url = dialled_url = URL(f"{url.rstrip('/')}/validate")
    where = url
    if cluster_ip is not None:
        dialled_url = service_url.with_host(cluster_ip)
        where = f"{url}, dialled at its Service's cluster IP {dialled_url.authority},"
    try:
        async with (
            asyncio.timeout(PROBE_SECONDS),
            new_session({"User-Agent": "gatewright", "Host": service_url.authority}) as session,
            session.post(
                dialled_url,
                json=REVIEW,
                ssl=trusts,
                server_hostname=service_url.host,
                allow_redirects=False,
            ) as response,
        ):
            status, answer = response.status, await response.read()
    except (aiohttp.ClientError, OSError) as error:
        reason = reason_of(error, PROBE_SECONDS)
        raise ProbeError(f"{where} cannot be reached: {reason}") from error
    is_allowed = status == 200 and b'"allowed":true' in answer
    if not is_allowed and not (status == 403 and b"client certificate" in answer):
        body = answer[:200].decode("utf-8", "replace").strip()
        raise ProbeError(f"{where} answers with {status}: {body}")
