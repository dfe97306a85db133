"""Kubernetes' `ip()` and `cidr()`."""

import ipaddress
import re
from collections.abc import Callable
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface
from typing import Any

from webhook.cel.cost import NO_MORE, parsing
from webhook.cel.errors import EvaluationError, no_overload
from webhook.cel.functions import declare, succeeds
from webhook.cel.values import NAMES

IPAddress = IPv4Address | IPv6Address
Prefix = IPv4Interface | IPv6Interface
_BITS = re.compile(r"0|[1-9][0-9]{0,2}")
_STEPS = 24  # units of a call of Python's ipaddress
_BROADCAST = IPv4Address("255.255.255.255")
_CONVERSION = "parse error during conversion from string"
NAMES |= dict.fromkeys((IPv4Address, IPv6Address), "net.IP")
NAMES |= dict.fromkeys((IPv4Interface, IPv6Interface), "net.CIDR")


def parse_ip(text: str) -> IPAddress:
    """Parse an IP address."""
    try:
        parsed = ipaddress.ip_address(text)
    except ValueError:
        raise EvaluationError(
            f'IP Address "{text}" {_CONVERSION}: {_unparsed_message(text)}'
        ) from None
    if "%" in text:
        raise EvaluationError(f'IP address "{text}" with zone value is not allowed')
    if _is_mapped(parsed):
        raise EvaluationError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return parsed


def parse_cidr(text: str) -> Prefix:
    """Parse a CIDR prefix."""
    address, slash, bits = text.rpartition("/")
    failed, parsed = f"network address {_CONVERSION}", None
    with suppress(ValueError):
        parsed = ipaddress.ip_address(address)
    if parsed is None:
        why = _unparsed_message(address) if slash else "no '/'"
    elif not _BITS.fullmatch(bits):
        why = f'bad bits after slash: "{bits}"'
    elif int(bits) > parsed.max_prefixlen or "%" in text:
        why = "prefix length out of range"
    elif _is_mapped(parsed):
        raise EvaluationError(f'{failed}: IPv4-mapped IPv6 address "{text}" is not allowed')
    else:
        return ipaddress.ip_interface(text)
    raise EvaluationError(f'{failed}: {failed}: netip.ParsePrefix("{text}"): {why}')


def _unparsed_message(text: str) -> str:
    return f'ParseAddr("{text}"): unable to parse IP'


def _is_mapped(address: IPAddress) -> bool:
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None


def _is_link_local_multicast(address: IPAddress) -> bool:
    packed = address.packed
    if address.version == 4:
        return packed[:3] == b"\xe0\x00\x00"
    return packed[0] == 0xFF and packed[1] & 0x0F == 2


def _is_global_unicast(address: IPAddress) -> bool:
    of_this_host = address.is_unspecified or address.is_loopback or address.is_link_local
    return not (of_this_host or address.is_multicast or address == _BROADCAST)


def _mask(prefix: Prefix) -> Prefix:
    return ipaddress.ip_interface(prefix.network)


def _contains_ip(prefix: Prefix, address: IPAddress) -> bool:
    return address in prefix.network


def _contains(prefix: Prefix, other: Prefix) -> bool:
    one, two = prefix.network, other.network
    return one.prefixlen <= two.prefixlen and two.network_address in one


def _parsing_second(_: object, text: str) -> int:
    return _STEPS + parsing(text)


def _of_text(
    contains: Callable[[Prefix, Any], bool], parse: Callable[[str], Any]
) -> Callable[[Prefix, str], bool]:
    def contains_text(prefix: Prefix, text: str) -> bool:
        try:
            return contains(prefix, parse(text))
        except EvaluationError:
            raise no_overload() from None  # as in the API server, which has no other message

    return contains_text


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
    ("(net.CIDR).masked() -> net.CIDR", _mask, _STEPS),
    ("(net.CIDR).containsIP(net.IP) -> bool", _contains_ip, _STEPS),
    ("(net.CIDR).containsIP(string) -> bool", _of_text(_contains_ip, parse_ip), _parsing_second),
    ("(net.CIDR).containsCIDR(net.CIDR) -> bool", _contains, _STEPS),
    ("(net.CIDR).containsCIDR(string) -> bool", _of_text(_contains, parse_cidr), _parsing_second),
)
