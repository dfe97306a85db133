"""Kubernetes' `url()`, which parses as Go's net/url does."""

import re
from dataclasses import dataclass
from urllib.parse import parse_qs, quote

from webhook.cel.cost import NO_MORE, READ
from webhook.cel.errors import EvaluationError
from webhook.cel.functions import declare, succeeds
from webhook.cel.values import NAMES

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
    """Parse a URL. Raises EvaluationError if Go's url.ParseRequestURI fails."""
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
    if host.startswith("["):
        port = host[host.rfind("]") + 1 :]
    else:
        port = host[host.rfind(":") :] if ":" in host else ""
    _refuse(text, at and _BAD_USER.search(user), "net/url: invalid userinfo")
    _refuse(text, host.startswith("[") and "]" not in host, "missing ']' in host")
    _refuse(text, not _PORT.fullmatch(port), f'invalid port "{port}" after host')
    if not _HOST.fullmatch(host):
        if escape := _BAD_ESCAPE.search(host) or re.search("%..", host):
            _refuse(text, True, f'invalid URL escape "{escape.group()}"')
        character = next(each for each in host if not _HOST.fullmatch(each))
        _refuse(text, True, f'invalid character "{character}" in host name')
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
    parts = url.query.split("&")
    pairs = [part for part in parts if ";" not in part and not _BAD_ESCAPE.search(part)]
    return parse_qs("&".join(pairs), keep_blank_values=True)


def _parsing_url(text: str) -> int:
    return 40 + (len(text) >> 1)


def _escaped_path(url: URL) -> str:
    return quote(url.path, safe=_PATH_SAFE)


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
    (f"({_OF}).getEscapedPath() -> string", _escaped_path, _escaping),
    (f"({_OF}).getQuery() -> map(string, list(string))", _query, _splitting),
)
