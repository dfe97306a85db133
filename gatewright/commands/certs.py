"""`gatewright certs`: create a certificate authority and a serving certificate."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path

import click

from certs import CertificateError, KeyPair, expires, issue_ca, issue_serving
from gatewright.console.options import NamedPath

FILES = ("ca.crt", "ca.key", "tls.crt", "tls.key")
DNS_NAME = re.compile(
    r"(\*\.)?([a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9_])?\.)*[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?",
    re.IGNORECASE,
)


@click.command
@click.option(
    "--dns",
    "dns_names",
    multiple=True,
    metavar="NAME",
    help="DNS name of the server; may be repeated [localhost]",
)
@click.option(
    "--ip",
    "ip_addresses",
    multiple=True,
    metavar="ADDRESS",
    help="IP address of the server; may be repeated [127.0.0.1]",
)
@click.option("--force", is_flag=True, help="overwrite existing files")
@click.argument("directory", type=NamedPath(path_type=Path, file_okay=False))
def command(
    directory: Path, dns_names: tuple[str, ...], ip_addresses: tuple[str, ...], *, force: bool
) -> None:
    """Create a CA and a serving certificate in DIRECTORY: ca.crt, ca.key, tls.crt, tls.key.

    Only you can read the keys. Without --dns and --ip the certificate is for localhost.
    """
    _check(dns_names, ip_addresses)
    present = [name for name in FILES if (directory / name).exists()]
    if present and not force:
        raise CertificateError(
            f"{directory}: {', '.join(present)} already exist; --force overwrites them"
        )
    if not dns_names and not ip_addresses:
        dns_names, ip_addresses = ("localhost",), ("127.0.0.1",)
    now = datetime.now(UTC)
    ca = issue_ca("gatewright", now)
    serving = issue_serving(ca, dns_names, ip_addresses, now)
    write_pairs(directory, ca, serving)
    click.echo(
        f"{directory / 'ca.crt'}   valid until {expires(ca.certificate):%Y-%m-%d}; register it as "
        "caBundle"
    )
    names = ", ".join((*dns_names, *ip_addresses))
    click.echo(
        f"{directory / 'tls.crt'}  valid until {expires(serving.certificate):%Y-%m-%d}, for {names}"
    )


def _check(dns_names: Iterable[str], ip_addresses: Iterable[str]) -> None:
    """Raise a usage error for an invalid DNS name or IP address."""
    for name in dns_names:
        if not DNS_NAME.fullmatch(name):
            raise click.BadParameter(f'"{name}" is not a valid DNS name', param_hint="--dns")
    for address in ip_addresses:
        try:
            ip_address(address)
        except ValueError:
            raise click.BadParameter(
                f'"{address}" is not a valid IP address', param_hint="--ip"
            ) from None


def write_pairs(directory: Path, ca: KeyPair, serving: KeyPair) -> None:
    """Write both pairs. Raises CertificateError if the directory cannot be written."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in zip(
            FILES, (ca.certificate, ca.key, serving.certificate, serving.key), strict=True
        ):
            file = directory / name
            # Overwriting would keep the file's mode, which may let other users read the key.
            file.unlink(missing_ok=True)
            file.touch(mode=0o600 if name.endswith(".key") else 0o644, exist_ok=False)
            file.write_bytes(content)
    except OSError as error:
        raise CertificateError(f"{error.filename or directory}: {error.strerror}") from None
