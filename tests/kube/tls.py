"""Certificates for test servers on 127.0.0.1."""

import ssl
from datetime import UTC, datetime
from pathlib import Path

from certs.issue import issue_ca, issue_serving


def serving(directory: Path, *addresses: str) -> tuple[ssl.SSLContext, Path]:
    """Return the context of a server with a certificate for these addresses, and the file of its authority."""
    now = datetime.now(UTC)
    authority = issue_ca("test", now)
    pair = issue_serving(authority, ["api.example.test"], addresses, now)
    for name, content in (
        ("ca.crt", authority.certificate),
        ("tls.crt", pair.certificate),
        ("tls.key", pair.key),
    ):
        (directory / name).write_bytes(content)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(directory / "tls.crt", directory / "tls.key")
    return context, directory / "ca.crt"
