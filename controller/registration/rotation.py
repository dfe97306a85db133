"""Rotation, a pure function: when to issue and renew the authority and the serving pair.

The authority's Secret holds the pair that signs (`tls.crt`, `tls.key`) and the bundle that clients
trust (`ca.crt`): that authority, and those before it for as long as they are valid. So a new
authority is trusted everywhere before anything signed by it is served: first the bundle is
published, then the serving certificate is issued, and the old authority is removed from the bundle
when it expires. If the process ends between two of these steps, the next process continues from the
stored state.
"""

import base64
import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from certs import (
    CertificateError,
    KeyPair,
    check,
    check_authority,
    join,
    prune,
    renewal_due,
    renewal_time,
)
from kube.resource import JsonObject

LOOK_AGAIN = timedelta(hours=1)  # a machine that was suspended may have missed the renewal time


@dataclass(frozen=True, slots=True)
class Authority:
    """The content of the authority's Secret."""

    pair: KeyPair
    bundle: bytes


@dataclass(frozen=True, slots=True)
class Todo:
    """The next step, and when to look again."""

    authority: bool = False
    serving: bool = False
    bundle: bytes | None = None
    look_again: timedelta = LOOK_AGAIN


def plan(
    authority: Authority | None,
    serving: KeyPair | None,
    published: Sequence[bytes],
    dns_name: str,
    now: datetime,
) -> Todo:
    """Return the next step, one at a time.

    `published` are the CA bundles in webhook configurations and CRDs.
    """
    if authority is None or renewal_due(authority.pair.certificate, now):
        return Todo(authority=True)
    bundle = prune(authority.bundle, now)
    if bundle != authority.bundle:
        return Todo(bundle=bundle)
    if serving is None or _is_refused(serving, bundle, dns_name, now):
        return Todo(serving=True)
    outdated = renewal_due(serving.certificate, now) or _is_refused(
        serving, authority.pair.certificate, dns_name, now
    )
    if outdated and all(_trusts(each, authority.pair.certificate) for each in published):
        return Todo(serving=True)
    due = min(renewal_time(authority.pair.certificate), renewal_time(serving.certificate))
    return Todo(look_again=min(LOOK_AGAIN, max(due - now, timedelta(minutes=1))))


def successor(
    pair: KeyPair, before: Authority | None, published: Iterable[bytes], now: datetime
) -> Authority:
    """Return a new authority whose bundle also has the earlier ones.

    One of those signed the certificate that is served now.
    """
    bundles = published if before is None else [before.bundle]
    return Authority(pair, join(pair.certificate, *(_living(bundle, now) for bundle in bundles)))


def _living(bundle: bytes, now: datetime) -> bytes:
    try:
        return prune(bundle, now)
    except CertificateError:
        return b""


def _trusts(bundle: bytes, certificate: bytes) -> bool:
    try:
        return join(certificate) in join(bundle)
    except CertificateError:
        return False


def _is_refused(pair: KeyPair, bundle: bytes, dns_name: str, now: datetime) -> bool:
    try:
        check(pair, bundle, dns_name, now)
    except CertificateError:
        return True
    return False


def read_authority(secret: JsonObject | None, now: datetime) -> Authority | None:
    """Return the content of the authority's Secret.

    None if there is no Secret, or no pair that can sign.
    """
    pair = read_pair(secret)
    if pair is None:
        return None
    try:
        check_authority(pair, now)
    except CertificateError:
        return None
    try:
        return Authority(pair, join(pair.certificate, _decode(secret, "ca.crt")))
    except CertificateError:
        return Authority(pair, join(pair.certificate))


def read_pair(secret: JsonObject | None) -> KeyPair | None:
    """Return the pair of a Secret; None if one half is missing."""
    certificate, key = _decode(secret, "tls.crt"), _decode(secret, "tls.key")
    return KeyPair(certificate, key) if certificate and key else None


def _decode(secret: JsonObject | None, key: str) -> bytes:
    data = (secret or {}).get("data") or {}
    try:
        return base64.b64decode(data.get(key) or "")
    except binascii.Error:
        return b""
