"""Kubernetes' `ip()` and `cidr()`."""

import ipaddress
import re
from collections.abc import Callable
from typing import Any

from webhook.cel.errors import EvaluationError, no_overload
from webhook.cel.functions import declare, function
from webhook.cel.values import Opaque

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_BITS = re.compile(r"0|[1-9]\d{0,2}")


class IP(Opaque):
    """An IP address."""

    type_name = "net.IP"

    def __init__(self, address: Address) -> None:
        self.key = address


class CIDR(Opaque):
    """An address with the length of its prefix; the bits behind it are kept."""

    type_name = "net.CIDR"

    def __init__(self, address: Address, bits: int) -> None:
        self.key = (address, bits)

    @property
    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        """The network that it is in."""
        return ipaddress.ip_network((self.key[0], self.key[1]), strict=False)


def _address(text: str) -> Address:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        raise EvaluationError(
            f'IP Address "{text}" parse error during conversion from string: ParseAddr("{text}"): unable to parse IP'
        ) from None
    if "%" in text:
        raise EvaluationError(f'IP address "{text}" with zone value is not allowed')
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped:
        raise EvaluationError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return found


def _is_link_local_multicast(address: Address) -> bool:
    packed = address.packed
    return packed[:3] == b"\xe0\x00\x00" if address.version == 4 else packed[0] == 0xFF and packed[1] & 0x0F == 2


def _is_global_unicast(address: Address) -> bool:
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and str(address) != "255.255.255.255"


def is_valid(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    """Return a function that returns whether `parse` takes a text."""

    def valid(text: str) -> bool:
        try:
            parse(text)
        except EvaluationError:
            return False
        return True

    return valid


_TESTS: dict[str, Callable[[Address], bool]] = {
    "isUnspecified": lambda address: address.is_unspecified,
    "isLoopback": lambda address: address.is_loopback,
    "isLinkLocalMulticast": _is_link_local_multicast,
    "isLinkLocalUnicast": lambda address: address.is_link_local,
    "isGlobalUnicast": _is_global_unicast,
}
for _name, _test in _TESTS.items():
    declare(lambda address, test=_test: test(address.key), f"(net.IP).{_name}() -> bool")
declare(lambda text: IP(_address(text)), "ip(string) -> net.IP")
declare(is_valid(_address), "isIP(string) -> bool")
declare(lambda text: str(_address(text)) == text, "ip.isCanonical(string) -> bool")
declare(lambda address: str(address.key), "string(net.IP) -> string")
declare(lambda address: address.key.version, "(net.IP).family() -> int")


@function("cidr(string) -> net.CIDR")
def parse_cidr(text: str) -> CIDR:
    """Return the prefix that `text` says."""
    address, slash, bits = text.rpartition("/")
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        found = None
    if found is None or not _BITS.fullmatch(bits) or int(bits) > found.max_prefixlen or "%" in text:
        why = "no '/'" if not slash else _bits_fault(bits) if found else _unparsed(address)
        failed = "network address parse error during conversion from string"
        raise EvaluationError(f'{failed}: {failed}: netip.ParsePrefix("{text}"): {why}')
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped:
        text = f'IPv4-mapped IPv6 address "{text}" is not allowed'
        raise EvaluationError(f"network address parse error during conversion from string: {text}")
    return CIDR(found, int(bits))


def _bits_fault(bits: str) -> str:
    return "prefix length out of range" if _BITS.fullmatch(bits) else f'bad bits after slash: "{bits}"'


def _unparsed(text: str) -> str:
    return f'ParseAddr("{text}"): unable to parse IP'


def _parsed(parse: Callable[[str], Any], text: str) -> Any:
    try:
        return parse(text)
    except EvaluationError:
        raise no_overload() from None  # all that the API server says of it


def _contains(prefix: CIDR, other: CIDR) -> bool:
    one, two = prefix.network, other.network
    return one.version == two.version and one.prefixlen <= two.prefixlen and two.network_address in one


declare(is_valid(parse_cidr), "isCIDR(string) -> bool")
declare(lambda prefix: f"{prefix.key[0]}/{prefix.key[1]}", "string(net.CIDR) -> string")
declare(lambda prefix: IP(prefix.key[0]), "(net.CIDR).ip() -> net.IP")
declare(lambda prefix: prefix.key[1], "(net.CIDR).prefixLength() -> int")
declare(lambda prefix: CIDR(prefix.network.network_address, prefix.key[1]), "(net.CIDR).masked() -> net.CIDR")
declare(lambda prefix, address: address.key in prefix.network, "(net.CIDR).containsIP(net.IP) -> bool")
declare(lambda prefix, text: _parsed(_address, text) in prefix.network, "(net.CIDR).containsIP(string) -> bool")
declare(_contains, "(net.CIDR).containsCIDR(net.CIDR) -> bool")
declare(lambda prefix, text: _contains(prefix, _parsed(parse_cidr, text)), "(net.CIDR).containsCIDR(string) -> bool")
