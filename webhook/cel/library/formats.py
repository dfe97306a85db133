"""Kubernetes' named formats: `format.dns1123Label().validate(text)` is an optional list of what is wrong."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from webhook.cel.functions import declare, fault, parsing
from webhook.cel.library.regexes import compiled
from webhook.cel.library.times import parse_timestamp
from webhook.cel.library.urls import parse_url
from webhook.cel.values import NAMES, NONE, Optional


class Rule(NamedTuple):
    """A pattern, the API server's error for other texts, and the maximum length in bytes."""

    pattern: str
    error: str
    longest: int = 2**31


_ENDS = "must start and end with an alphanumeric character"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_RULE = Rule(
    _LABEL,
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and {_ENDS} "
    f"(e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')",
    63,
)
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_SUBDOMAIN_RULE = Rule(
    _SUBDOMAIN,
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and {_ENDS} "
    f"(e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')",
    253,
)
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035_RULE = Rule(
    _LABEL_1035,
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character "
    f"(e.g. 'my-name',  or 'abc-123', regex used for validation is '{_LABEL_1035}')",
    63,
)
_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE_RULE = Rule(
    f"({_NAME})?",
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and {_ENDS} "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '({_NAME})?')",
    63,
)
_PART = (
    f"must consist of alphanumeric characters, '-', '_' or '.', and {_ENDS} "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_PART_RULE = Rule(_NAME, f"name part {_PART}", 63)
_UUID = "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"
_BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"


def _is(pattern: str, text: str) -> bool:
    return compiled(pattern).fullmatch(text) is not None


def _by(rule: Rule, text: str) -> list[str]:
    found = [f"must be no more than {rule.longest} bytes"] if len(text.encode()) > rule.longest else []
    return found if _is(rule.pattern, text) else [*found, rule.error]


def _label(text: str) -> list[str]:
    dots = _is(_SUBDOMAIN, text)
    return ["must not contain dots" if dots and each == _LABEL_RULE.error else each for each in _by(_LABEL_RULE, text)]


def _qualified_name(text: str) -> list[str]:
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return [f"a valid label key {_PART} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    found = [f"prefix part {each}" for each in _by(_SUBDOMAIN_RULE, prefix)] if prefix else []
    found += ["prefix part must be non-empty"] if slash and not prefix else []
    found += [] if name else ["name part must be non-empty"]
    return found + [each.replace("must be no", "name part must be no", 1) for each in _by(_PART_RULE, name)]


def _ended(validate: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Return the validation of a prefix, which may end with a dash."""
    return lambda text: validate(f"{text[:-1]}a" if text.endswith("-") else text)


def _parsed(parse: Callable[[str], Any], text: str, message: str = "") -> list[str]:
    error = fault(parse, text)
    return [] if error is None else [message or str(error).partition(": ")[2]]


FORMATS: dict[str, Callable[[str], list[str]]] = {  # each returns what is wrong with a text
    "dns1123Label": _label,
    "dns1123LabelPrefix": _ended(_label),
    "dns1123Subdomain": partial(_by, _SUBDOMAIN_RULE),
    "dns1123SubdomainPrefix": _ended(partial(_by, _SUBDOMAIN_RULE)),
    "dns1035Label": partial(_by, _LABEL_1035_RULE),
    "dns1035LabelPrefix": _ended(partial(_by, _LABEL_1035_RULE)),
    "labelValue": partial(_by, _VALUE_RULE),
    "qualifiedName": _qualified_name,
    "uuid": partial(_by, Rule(_UUID, "does not match the UUID format")),
    "byte": partial(_by, Rule(_BASE64, "invalid base64")),
    "uri": partial(_parsed, parse_url),
    "date": lambda text: _parsed(parse_timestamp, f"{text}T00:00:00Z", "invalid date"),
    "datetime": partial(_parsed, parse_timestamp, message="invalid datetime"),
}


class Format(str):
    """A named format, by its name."""

    __slots__ = ()


NAMES[Format] = _OF = "kubernetes.NamedFormat"


def _validate(form: Format, text: str) -> Optional:
    found = FORMATS[form](text)
    return Optional(found) if found else NONE


declare(
    *((f"format.{name}() -> {_OF}", lambda name=name: Format(name)) for name in FORMATS),
    (f"format.named(string) -> optional_type({_OF})", lambda name: Optional(Format(name)) if name in FORMATS else NONE),
    (f"({_OF}).validate(string) -> optional_type(list(string))", _validate, parsing),
)
