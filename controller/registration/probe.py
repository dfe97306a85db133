"""Finds out whether a webhook answers, as the API server would ask it."""

import ssl

import orjson

from kube.endpoint import Endpoint
from kube.transport import Transport, reason_of

PROBE_SECONDS = 5.0
ABOUT = {"group": "gatewright.io", "version": "v1alpha1"}
REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "probe",
        "operation": "CONNECT",
        "kind": ABOUT | {"kind": "Probe"},
        "resource": ABOUT | {"resource": "probes"},
    },
}


class ProbeError(Exception):
    """No webhook answers as it should; the text says what happened."""


async def probe(url: str, ca_bundle: bytes) -> None:
    """Ask for a review of nothing, over TLS that `ca_bundle` vouches for; ProbeError unless it is allowed."""
    try:
        trusts = ssl.create_default_context(cadata=ca_bundle.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise ProbeError(f"{url}: the CA bundle cannot be read: {error}") from error
    endpoint = Endpoint(url.rstrip("/"), ssl=trusts)
    try:
        async with Transport(endpoint, user_agent="gatewright", timeout=PROBE_SECONDS) as transport:
            answer = await transport.ask("POST", "/validate", body=orjson.dumps(REVIEW))
    except OSError as error:
        raise ProbeError(f"{url} cannot be reached: {reason_of(error, PROBE_SECONDS)}") from error
    if answer.status != 200 or b'"allowed":true' not in answer.body:
        text = answer.body[:200].decode("utf-8", "replace").strip()
        raise ProbeError(f"{url} answers with {answer.status}: {text}")
