"""Kubernetes' named formats: `format.dns1123Label().validate(text)` is an optional list of what is wrong."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from webhook.cel.functions import declare, fault, parsing
from webhook.cel.library.times import parse_timestamp
from webhook.cel.library.urls import parse_url
from webhook.cel.values import NAMES, NONE, Optional

Validate = Callable[[str], list[str]]  # returns what is wrong with a text


class Rule(NamedTuple):
    """A pattern, the maximum length in bytes, the API server's error for other texts, and its examples."""

    pattern: str
    longest: int
    message: str
    examples: tuple[str, ...]


_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_CONSISTS = "must consist of lower case alphanumeric characters"
_ENDS = "must start and end with an alphanumeric character"
_LABEL_RULE = Rule(_LABEL, 63, f"a lowercase RFC 1123 label {_CONSISTS} or '-', and {_ENDS}", ("my-name", "123-abc"))
_SUBDOMAIN_RULE = Rule(
    rf"{_LABEL}(\.{_LABEL})*",
    253,
    f"a lowercase RFC 1123 subdomain {_CONSISTS}, '-' or '.', and {_ENDS}",
    ("example.com",),
)
_RULES = {
    "dns1123Label": _LABEL_RULE,
    "dns1123Subdomain": _SUBDOMAIN_RULE,
    "dns1035Label": Rule(
        "[a-z]([-a-z0-9]*[a-z0-9])?",
        63,
        f"a DNS-1035 label {_CONSISTS} or '-', start with an alphabetic character, "
        "and end with an alphanumeric character",
        ("my-name", "abc-123"),
    ),
    "labelValue": Rule(
        f"({_NAME})?",
        63,
        f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and {_ENDS}",
        ("MyValue", "my_value", "12345"),
    ),
}
_UUID = "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"
_BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
_LINEAR = 4096  # characters; longer text is wrong in every format that has a pattern of Python's


def _is(pattern: str, text: str) -> bool:
    return len(text) <= _LINEAR and re.fullmatch(pattern, text) is not None


def _by_rule(rule: Rule) -> Validate:
    def validate(text: str) -> list[str]:
        found = [f"must be no more than {rule.longest} bytes"] if len(text.encode()) > rule.longest else []
        if _is(rule.pattern, text):
            return found
        if rule is _LABEL_RULE and _is(_SUBDOMAIN_RULE.pattern, text):
            return [*found, "must not contain dots"]
        shown = " or ".join(f"'{each}', " for each in rule.examples).rstrip(", ")
        return [*found, f"{rule.message} (e.g. {shown}, regex used for validation is '{rule.pattern}')"]

    return validate


def _prefix(validate: Validate) -> Validate:
    return lambda text: validate(f"{text[:-1]}a" if text.endswith("-") else text)


def _qualified_name(text: str) -> list[str]:
    prefix, slash, name = text.rpartition("/")
    part = f"part must consist of alphanumeric characters, '-', '_' or '.', and {_ENDS} "
    part += f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
    if "/" in prefix:
        rest = f"{part[5:]} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {rest}"]
    found = [f"prefix part {each}" for each in _by_rule(_SUBDOMAIN_RULE)(prefix)] if prefix else []
    found += ["prefix part must be non-empty"] if slash and not prefix else []
    if not name:
        found.append("name part must be non-empty")
    elif len(name) > 63:
        found.append("name part must be no more than 63 bytes")
    return found if _is(_NAME, name) else [*found, f"name {part}"]


def _parsed(parse: Callable[[str], Any], message: str = "") -> Validate:
    def validate(text: str) -> list[str]:
        error = fault(parse, text)
        return [] if error is None else [message or str(error).partition(": ")[2]]

    return validate


FORMATS: dict[str, Validate] = {
    **{name: _by_rule(rule) for name, rule in _RULES.items()},
    **{f"{name}Prefix": _prefix(_by_rule(rule)) for name, rule in _RULES.items() if name.startswith("dns")},
    "qualifiedName": _qualified_name,
    "uri": _parsed(parse_url),
    "uuid": lambda text: [] if _is(_UUID, text) else ["does not match the UUID format"],
    "byte": lambda text: [] if re.fullmatch(_BASE64, text) else ["invalid base64"],
    "date": _parsed(lambda text: parse_timestamp(f"{text}T00:00:00Z"), "invalid date"),
    "datetime": _parsed(parse_timestamp, "invalid datetime"),
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
