"""Who may send reviews: those with a client certificate, and a name that is allowed."""

from collections.abc import Iterable
from typing import Any

from aiohttp import web

from webhook.server.answers import Refusal


class Callers:
    """Decides by the certificate that a client showed in its TLS handshake, which has verified it.

    /convert is open to all: the API server has no certificate there, and nothing but what it sends
    is in the answer.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        """Take the common names that are allowed; without any, all that the CA signed are."""
        self._names = frozenset(names)

    def check(self, request: web.BaseRequest, hook: str) -> None:
        """Refuse a caller that may not send this."""
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
