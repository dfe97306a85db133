"""Kubernetes' `url()`: absolute URLs and paths, as Go's net/url parses a request's."""

import re
from urllib.parse import parse_qsl, quote

from webhook.cel.errors import EvaluationError
from webhook.cel.functions import declare, function, linear
from webhook.cel.library.network import is_valid
from webhook.cel.values import Opaque

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_PORT = re.compile(r"(?::\d*)?", re.ASCII)
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_HOST = re.compile(r"(?:[-A-Za-z0-9._~!$&'()*+,;=:\[\]<>\"]|[^\x00-\x7f]|%[8-9a-fA-F][0-9a-fA-F])*")
_PATH_SAFE = "/-_.~!$&'()*+,;=:@%[]"


class URL(Opaque):
    """A parsed URL."""

    type_name = "kubernetes.URL"

    def __init__(self, text: str, scheme: str, host: str, path: str, query: str) -> None:
        self.key = text
        self.scheme, self.host, self.path, self.query = scheme, host, path, query


def _of_url(url: URL) -> int:
    return linear(url.key)


@function("url(string) -> kubernetes.URL", cost=linear)
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
    if not rest.startswith("/"):
        if scheme:
            return URL(text, scheme, "", "", query.partition("#")[0])
        if text != "*":
            raise EvaluationError(f"{fail}invalid URI for request")
    host, path = "", rest
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        host, path = _host(fail, authority), slash + path
    if bad := _BAD_ESCAPE.search(path):
        raise EvaluationError(f'{fail}invalid URL escape "{path[bad.start() : bad.start() + 3]}"')
    path = path.partition("#")[0]
    return URL(text, scheme, host.partition("#")[0], path, query.partition("#")[0] if "#" not in rest else "")


def _host(fail: str, authority: str) -> str:
    user, at, host = authority.rpartition("@")
    if at and re.search(r"[^-A-Za-z0-9._~!$&'()*+,;=:%@]", user):
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


declare(is_valid(parse_url), "isURL(string) -> bool", cost=linear)
declare(lambda url: url.scheme, "(kubernetes.URL).getScheme() -> string")
declare(lambda url: url.host, "(kubernetes.URL).getHost() -> string")
declare(_hostname, "(kubernetes.URL).getHostname() -> string")
declare(
    lambda url: url.host[url.host.rfind("]") + 1 :].rpartition(":")[2] if ":" in url.host else "",
    "(kubernetes.URL).getPort() -> string",
)
declare(lambda url: quote(url.path, safe=_PATH_SAFE), "(kubernetes.URL).getEscapedPath() -> string", cost=_of_url)


@function("(kubernetes.URL).getQuery() -> map(string, list(string))", cost=_of_url)
def _query(url: URL) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    pairs = [part for part in url.query.split("&") if ";" not in part and not _BAD_ESCAPE.search(part)]
    for key, value in parse_qsl("&".join(pairs), keep_blank_values=True):
        found.setdefault(key, []).append(value)
    return found
