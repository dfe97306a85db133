"""Kubernetes' `ip()` and `cidr()`, and `url()`, which parses as Go's net/url does."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv6Address,
    IPv6Interface,
    ip_address,
    ip_interface,
)
from typing import Any
from urllib.parse import parse_qs, quote

from webhook.cel.cost import NO_MORE, READ, parsing
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
_PARTS = re.compile(r"(?:([a-zA-Z][a-zA-Z0-9+.-]*):)?([^?]*)\??([^#]*).*", re.DOTALL)
_PORT = re.compile(r"(?::\d*)?", re.ASCII)
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2}).{0,2}", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_HOST = re.compile(r"(?:[-A-Za-z0-9._~!$&'()*+,;=:\[\]<>\"]|[^\x00-\x7f]|%[8-9a-fA-F][0-9a-fA-F])*")
_BAD_USER = re.compile(r"[^-A-Za-z0-9._~!$&'()*+,;=:%@]")
_PATH_SAFE = "/-_.~!$&'()*+,;=:@%[]"


@dataclass(frozen=True, slots=True)
class URL:
    """A parsed URL."""

    text: str
    scheme: str
    host: str = ""
    path: str = ""
    query: str = ""


NAMES[URL] = _OF = "kubernetes.URL"


def parse_url(text: str) -> URL:
    """Return the URL that `text` says. EvaluationError where Go's url.ParseRequestURI has one."""
    match = _PARTS.fullmatch(text)
    assert match is not None
    scheme, rest, query = match.groups(default="")
    _refuse(text, not text, "empty url")
    _refuse(text, _CONTROL.search(text), "net/url: invalid control character in URL")
    _refuse(text, text.startswith(":"), "missing protocol scheme")
    if not rest.startswith("/"):
        _refuse(text, not scheme and text != "*", "invalid URI for request")
        return URL(text, scheme.lower(), path="" if scheme else rest, query=query)
    host, path = "", rest
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        host, path = _host(text, authority), slash + path
    if bad := _BAD_ESCAPE.search(path):
        _refuse(text, True, f'invalid URL escape "{bad.group()}"')
    return URL(
        text,
        scheme.lower(),
        host.partition("#")[0],
        path.partition("#")[0],
        "" if "#" in rest else query,
    )


def _host(text: str, authority: str) -> str:
    user, at, host = authority.rpartition("@")
    port = (
        host[host.rfind("]") + 1 :]
        if host.startswith("[")
        else host[host.rfind(":") :]
        if ":" in host
        else ""
    )
    _refuse(text, at and _BAD_USER.search(user), "net/url: invalid userinfo")
    _refuse(text, host.startswith("[") and "]" not in host, "missing ']' in host")
    _refuse(text, not _PORT.fullmatch(port), f'invalid port "{port}" after host')
    if not _HOST.fullmatch(host):
        if escape := _BAD_ESCAPE.search(host) or re.search("%..", host):
            _refuse(text, True, f'invalid URL escape "{escape.group()}"')
        _refuse(
            text,
            True,
            f'invalid character "{next(c for c in host if not _HOST.fullmatch(c))}" in host name',
        )
    return host


def _refuse(text: str, wrong: object, why: str) -> None:
    if wrong:
        raise EvaluationError(
            f'URL parse error during conversion from string: parse "{text}": {why}'
        )


def _hostname(url: URL) -> str:
    bracketed = url.host[1 : url.host.rfind("]")] if url.host.startswith("[") else ""
    return bracketed or url.host.partition(":")[0]


def _port(url: URL) -> str:
    return url.host[url.host.rfind("]") + 1 :].rpartition(":")[2] if ":" in url.host else ""


def _of_host(url: URL) -> int:
    return 2 + (len(url.host) >> READ)


def _query(url: URL) -> dict[str, list[str]]:
    pairs = [
        part for part in url.query.split("&") if ";" not in part and not _BAD_ESCAPE.search(part)
    ]
    return parse_qs("&".join(pairs), keep_blank_values=True)


def _parsing_url(text: str) -> int:
    return 40 + (len(text) >> 1)


def _escaping(url: URL) -> int:
    return 8 + (len(url.path) >> 1)


def _splitting(url: URL) -> int:
    return 30 + 10 * url.query.count("&") + (len(url.query) >> 1)


declare(
    (f"url(string) -> {_OF}", parse_url, _parsing_url),
    ("isURL(string) -> bool", succeeds(parse_url), _parsing_url),
    (f"({_OF}).getScheme() -> string", lambda url: url.scheme, NO_MORE),
    (f"({_OF}).getHost() -> string", lambda url: url.host, NO_MORE),
    (f"({_OF}).getHostname() -> string", _hostname, _of_host),
    (f"({_OF}).getPort() -> string", _port, _of_host),
    (
        f"({_OF}).getEscapedPath() -> string",
        lambda url: quote(url.path, safe=_PATH_SAFE),
        _escaping,
    ),
    (f"({_OF}).getQuery() -> map(string, list(string))", _query, _splitting),
)
