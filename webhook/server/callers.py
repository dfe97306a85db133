"""Checks who may send reviews: clients with a certificate and an allowed common name."""

from collections.abc import Iterable
from typing import Any

from aiohttp import web

from webhook.server.answers import Refusal


class Callers:
    """Decides by the client certificate, which the TLS handshake has verified.

    /convert is open to every client: the API server presents no certificate there, and the answer
    contains only data from the request.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        """Take the allowed common names; by default all that the CA signed."""
        self._names = frozenset(names)

    def check(self, request: web.BaseRequest, hook: str) -> None:
        """Raise Refusal if the caller may not send this."""
        if hook == "convert":
            return
        certificate = request.get_extra_info("peercert")
        if not certificate:
            raise Refusal(403, "reviews need a client certificate, which is signed by --client-ca")
        name = _common_name(certificate)
        if self._names and name not in self._names:
            raise Refusal(403, f'"{name}" of the client certificate is not among --client-names')


def _common_name(certificate: dict[str, Any]) -> str:
    fields = dict(field for part in certificate.get("subject", ()) for field in part)
    return str(fields.get("commonName", ""))
