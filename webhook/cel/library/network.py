"""Kubernetes' `ip()` and `cidr()`."""

import re
from collections.abc import Callable
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv6Address,
    IPv6Interface,
    ip_address,
    ip_interface,
)
from typing import Any

from webhook.cel.cost import NO_MORE, parsing
from webhook.cel.errors import EvaluationError, no_overload
from webhook.cel.functions import declare, succeeds
from webhook.cel.values import NAMES

IPAddress = IPv4Address | IPv6Address
Prefix = IPv4Interface | IPv6Interface
_BITS = re.compile(r"0|[1-9][0-9]{0,2}")
_STEPS = 24  # units of what Python's ipaddress calculates
_CONVERSION = "parse error during conversion from string"
NAMES |= {
    IPv4Address: "net.IP",
    IPv6Address: "net.IP",
    IPv4Interface: "net.CIDR",
    IPv6Interface: "net.CIDR",
}


def parse_ip(text: str) -> IPAddress:
    """Return the address that `text` says."""
    try:
        found = ip_address(text)
    except ValueError:
        raise EvaluationError(f'IP Address "{text}" {_CONVERSION}: {_unparsed(text)}') from None
    if "%" in text:
        raise EvaluationError(f'IP address "{text}" with zone value is not allowed')
    if _is_mapped(found):
        raise EvaluationError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return found


def parse_cidr(text: str) -> Prefix:
    """Return the prefix that `text` says."""
    address, slash, bits = text.rpartition("/")
    try:
        found = ip_address(address)
    except ValueError:
        found = None
    if found is None or not _BITS.fullmatch(bits) or int(bits) > found.max_prefixlen or "%" in text:
        why = (
            "prefix length out of range"
            if _BITS.fullmatch(bits)
            else f'bad bits after slash: "{bits}"'
        )
        why = "no '/'" if not slash else _unparsed(address) if found is None else why
        failed = f"network address {_CONVERSION}"
        raise EvaluationError(f'{failed}: {failed}: netip.ParsePrefix("{text}"): {why}')
    if _is_mapped(found):
        raise EvaluationError(
            f'network address {_CONVERSION}: IPv4-mapped IPv6 address "{text}" is not allowed'
        )
    return ip_interface(text)


def _unparsed(text: str) -> str:
    return f'ParseAddr("{text}"): unable to parse IP'


def _is_mapped(address: IPAddress) -> bool:
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None


def _is_link_local_multicast(address: IPAddress) -> bool:
    packed = address.packed
    return (
        packed[:3] == b"\xe0\x00\x00"
        if address.version == 4
        else packed[0] == 0xFF and packed[1] & 0x0F == 2
    )


def _is_global_unicast(address: IPAddress) -> bool:
    special = (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
    )
    return not special and str(address) != "255.255.255.255"


def _contains(prefix: Prefix, other: Prefix) -> bool:
    one, two = prefix.network, other.network
    return (
        one.version == two.version and one.prefixlen <= two.prefixlen and two.network_address in one
    )


def _parsing_second(_: object, text: str) -> int:
    return _STEPS + parsing(text)


def _parsed(parse: Callable[[str], Any], text: str) -> Any:
    try:
        return parse(text)
    except EvaluationError:
        raise no_overload() from None  # the API server has no further message


declare(
    ("ip(string) -> net.IP", parse_ip, parsing),
    ("isIP(string) -> bool", succeeds(parse_ip), parsing),
    ("ip.isCanonical(string) -> bool", lambda text: str(parse_ip(text)) == text, parsing),
    ("string(net.IP) -> string; string(net.CIDR) -> string", str, _STEPS),
    ("(net.IP).family() -> int", lambda address: address.version, NO_MORE),
    ("(net.IP).isUnspecified() -> bool", lambda address: address.is_unspecified, _STEPS),
    ("(net.IP).isLoopback() -> bool", lambda address: address.is_loopback, _STEPS),
    ("(net.IP).isLinkLocalUnicast() -> bool", lambda address: address.is_link_local, _STEPS),
    ("(net.IP).isLinkLocalMulticast() -> bool", _is_link_local_multicast, _STEPS),
    ("(net.IP).isGlobalUnicast() -> bool", _is_global_unicast, _STEPS),
    ("cidr(string) -> net.CIDR", parse_cidr, parsing),
    ("isCIDR(string) -> bool", succeeds(parse_cidr), parsing),
    ("(net.CIDR).ip() -> net.IP", lambda prefix: prefix.ip, _STEPS),
    ("(net.CIDR).prefixLength() -> int", lambda prefix: prefix.network.prefixlen, NO_MORE),
    ("(net.CIDR).masked() -> net.CIDR", lambda prefix: ip_interface(prefix.network), _STEPS),
    (
        "(net.CIDR).containsIP(net.IP) -> bool",
        lambda prefix, address: address in prefix.network,
        _STEPS,
    ),
    (
        "(net.CIDR).containsIP(string) -> bool",
        lambda prefix, text: _parsed(parse_ip, text) in prefix.network,
        _parsing_second,
    ),
    ("(net.CIDR).containsCIDR(net.CIDR) -> bool", _contains, _STEPS),
    (
        "(net.CIDR).containsCIDR(string) -> bool",
        lambda prefix, text: _contains(prefix, _parsed(parse_cidr, text)),
        _parsing_second,
    ),
)

# Scheme, host and path, query.
