"""Kubernetes' `url()`: absolute URLs and paths, as Go's net/url parses a request's."""

import re
from dataclasses import dataclass
from urllib.parse import parse_qs, quote

from webhook.cel.errors import EvaluationError
from webhook.cel.functions import declare, parsing, succeeds
from webhook.cel.values import NAMES

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_PORT = re.compile(r"(?::\d*)?", re.ASCII)
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
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
    fail = f'URL parse error during conversion from string: parse "{text}": '
    if not text:
        raise EvaluationError(f"{fail}empty url")
    if _CONTROL.search(text):
        raise EvaluationError(f"{fail}net/url: invalid control character in URL")
    if text.startswith(":"):
        raise EvaluationError(f"{fail}missing protocol scheme")
    match = _SCHEME.match(text)
    scheme = match.group()[:-1].lower() if match else ""
    rest, _, query = (text[match.end() :] if match else text).partition("?")
    query = query.partition("#")[0]
    if not rest.startswith("/"):
        if scheme:
            return URL(text, scheme, query=query)
        if text != "*":
            raise EvaluationError(f"{fail}invalid URI for request")
    host, path = "", rest
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        host, path = _host(fail, authority), slash + path
    if bad := _BAD_ESCAPE.search(path):
        raise EvaluationError(f'{fail}invalid URL escape "{path[bad.start() : bad.start() + 3]}"')
    return URL(text, scheme, host.partition("#")[0], path.partition("#")[0], "" if "#" in rest else query)


def _host(fail: str, authority: str) -> str:
    user, at, host = authority.rpartition("@")
    if at and _BAD_USER.search(user):
        raise EvaluationError(f"{fail}net/url: invalid userinfo")
    end = host.rfind("]")
    if host.startswith("[") and end < 0:
        raise EvaluationError(f"{fail}missing ']' in host")
    port = host[end + 1 :] if host.startswith("[") else host[host.rfind(":") :] if ":" in host else ""
    if not _PORT.fullmatch(port):
        raise EvaluationError(f'{fail}invalid port "{port}" after host')
    if not _HOST.fullmatch(host):
        bad = _BAD_ESCAPE.search(host) or re.search("%..", host)
        at_fault = host[bad.start() : bad.start() + 3] if bad else next(c for c in host if not _HOST.fullmatch(c))
        what = "URL escape" if bad else "character"
        raise EvaluationError(f'{fail}invalid {what} "{at_fault}"{"" if bad else " in host name"}')
    return host


def _hostname(url: URL) -> str:
    bracketed = url.host[1 : url.host.rfind("]")] if url.host.startswith("[") else ""
    return bracketed or url.host.partition(":")[0]


def _port(url: URL) -> str:
    return url.host[url.host.rfind("]") + 1 :].rpartition(":")[2] if ":" in url.host else ""


def _query(url: URL) -> dict[str, list[str]]:
    pairs = [part for part in url.query.split("&") if ";" not in part and not _BAD_ESCAPE.search(part)]
    return parse_qs("&".join(pairs), keep_blank_values=True)


def _cost(url: URL) -> int:
    return parsing(url.text)


declare(
    (f"url(string) -> {_OF}", parse_url, parsing),
    ("isURL(string) -> bool", succeeds(parse_url), parsing),
    (f"({_OF}).getScheme() -> string", lambda url: url.scheme),
    (f"({_OF}).getHost() -> string", lambda url: url.host),
    (f"({_OF}).getHostname() -> string", _hostname),
    (f"({_OF}).getPort() -> string", _port),
    (f"({_OF}).getEscapedPath() -> string", lambda url: quote(url.path, safe=_PATH_SAFE), _cost),
    (f"({_OF}).getQuery() -> map(string, list(string))", _query, _cost),
)
