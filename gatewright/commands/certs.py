"""`gatewright certs`: make a certificate authority and a serving certificate by hand."""

from datetime import UTC, datetime
from pathlib import Path

import click

from certs import CertificateError, KeyPair, expires, issue_ca, issue_serving

FILES = ("ca.crt", "ca.key", "tls.crt", "tls.key")


@click.command
@click.option(
    "--dns", "dns_names", multiple=True, metavar="NAME", help="DNS name of the server, repeatable [localhost]"
)
@click.option(
    "--ip", "ip_addresses", multiple=True, metavar="ADDRESS", help="IP address of the server, repeatable [127.0.0.1]"
)
@click.option("--force", is_flag=True, help="replace files that are there")
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
def command(directory: Path, dns_names: tuple[str, ...], ip_addresses: tuple[str, ...], *, force: bool) -> None:
    """Write a CA and a serving certificate of it into DIRECTORY: ca.crt, ca.key, tls.crt, tls.key.

    The keys are readable by you alone. Without --dns and --ip they are for localhost.
    """
    present = [name for name in FILES if (directory / name).exists()]
    if present and not force:
        raise CertificateError(f"{directory}: holds {', '.join(present)} already; --force replaces them")
    if not dns_names and not ip_addresses:
        dns_names, ip_addresses = ("localhost",), ("127.0.0.1",)
    now = datetime.now(UTC)
    ca = issue_ca("gatewright", now)
    serving = issue_serving(ca, dns_names, ip_addresses, now)
    write_pairs(directory, ca, serving)
    click.echo(f"{directory / 'ca.crt'}   valid until {expires(ca.certificate):%Y-%m-%d}; register it as caBundle")
    names = ", ".join((*dns_names, *ip_addresses))
    click.echo(f"{directory / 'tls.crt'}  valid until {expires(serving.certificate):%Y-%m-%d}, for {names}")


def write_pairs(directory: Path, ca: KeyPair, serving: KeyPair) -> None:
    """Write both pairs; CertificateError where the directory cannot be written."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in zip(FILES, (ca.certificate, ca.key, serving.certificate, serving.key), strict=True):
            file = directory / name
            file.unlink(missing_ok=True)  # what is replaced keeps its mode, and a key must be nobody else's
            file.touch(mode=0o600 if name.endswith(".key") else 0o644, exist_ok=False)
            file.write_bytes(content)
    except OSError as error:
        raise CertificateError(f"{error.filename or directory}: {error.strerror}") from None
