"""Kubernetes' named formats: `format.dns1123Label().validate(text)` is an optional list of what is wrong."""

import re
from collections.abc import Callable
from typing import Any

from webhook.cel.errors import CelError
from webhook.cel.functions import function, linear
from webhook.cel.library.times import parse_timestamp
from webhook.cel.library.urls import parse_url
from webhook.cel.values import NONE, Opaque, Optional

_LABEL, _LABEL_1035 = "[a-z0-9]([-a-z0-9]*[a-z0-9])?", "[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_NAME, _VALUE = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_CONSISTS = "must consist of lower case alphanumeric characters"
_ENDS = "must start and end with an alphanumeric character"
_RULES = {  # pattern, longest, what the API server says, examples
    "dns1123Label": (
        _LABEL,
        63,
        f"a lowercase RFC 1123 label {_CONSISTS} or '-', and {_ENDS}",
        ("my-name", "123-abc"),
    ),
    "dns1123Subdomain": (
        _SUBDOMAIN,
        253,
        f"a lowercase RFC 1123 subdomain {_CONSISTS}, '-' or '.', and {_ENDS}",
        ("example.com",),
    ),
    "dns1035Label": (
        _LABEL_1035,
        63,
        f"a DNS-1035 label {_CONSISTS} or '-', start with an alphabetic character, "
        "and end with an alphanumeric character",
        ("my-name", "abc-123"),
    ),
    "labelValue": (
        _VALUE,
        63,
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
        "and must start and end with an alphanumeric character",
        ("MyValue", "my_value", "12345"),
    ),
}
_UUID = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_LINEAR = 4096  # characters; longer text is wrong in every format that has a pattern of Python's


def _ruled(name: str, text: str) -> list[str]:
    pattern, longest, message, examples = _RULES[name]
    found = [f"must be no more than {longest} bytes"] if len(text.encode()) > longest else []
    if len(text) > _LINEAR or not re.fullmatch(pattern, text):
        if name == "dns1123Label" and len(text) <= _LINEAR and re.fullmatch(_SUBDOMAIN, text):
            return [*found, "must not contain dots"]
        shown = " or ".join(f"'{each}', " for each in examples).rstrip(", ")
        found.append(f"{message} (e.g. {shown}, regex used for validation is '{pattern}')")
    return found


def _prefix(name: str) -> Callable[[str], list[str]]:
    return lambda text: _ruled(name, f"{text[:-1]}a" if text.endswith("-") else text)


def _qualified_name(text: str) -> list[str]:
    prefix, slash, name = text.rpartition("/")
    message = (
        f"name part must consist of alphanumeric characters, '-', '_' or '.', and {_ENDS} "
        f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
    )
    if "/" in prefix:
        rest = f"{message[10:-1]}) with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {rest}"]
    found = [f"prefix part {each}" for each in _ruled("dns1123Subdomain", prefix)] if prefix else []
    found += ["prefix part must be non-empty"] if slash and not prefix else []
    if not name:
        found.append("name part must be non-empty")
    elif len(name) > 63:
        found.append("name part must be no more than 63 bytes")
    return found if len(name) <= _LINEAR and re.fullmatch(_NAME, name) else [*found, message]


def _parsed(parse: Callable[[str], Any], text: str | None) -> Callable[[str], list[str]]:
    def validated(value: str) -> list[str]:
        try:
            parse(value)
        except CelError as error:
            return [text or str(error).partition(": ")[2]]
        return []

    return validated


def _matched(pattern: re.Pattern[str], text: str) -> Callable[[str], list[str]]:
    return lambda value: [] if pattern.fullmatch(value) else [text]


FORMATS: dict[str, Callable[[str], list[str]]] = {
    **{name: lambda text, name=name: _ruled(name, text) for name in _RULES},  # type: ignore[misc]
    **{f"{name}Prefix": _prefix(name) for name in ("dns1123Label", "dns1123Subdomain", "dns1035Label")},
    "qualifiedName": _qualified_name,
    "uri": _parsed(parse_url, None),
    "uuid": _matched(_UUID, "does not match the UUID format"),
    "byte": _matched(_BASE64, "invalid base64"),
    "date": _parsed(lambda text: parse_timestamp(f"{text}T00:00:00Z"), "invalid date"),
    "datetime": _parsed(parse_timestamp, "invalid datetime"),
}


class Format(Opaque):
    """A named format."""

    type_name = "kubernetes.NamedFormat"

    def __init__(self, name: str) -> None:
        self.key = name


for _name in FORMATS:
    function(f"format.{_name}() -> kubernetes.NamedFormat")(lambda name=_name: Format(name))


@function("format.named(string) -> optional_type(kubernetes.NamedFormat)")
def _named(name: str) -> Optional:
    return Optional(Format(name)) if name in FORMATS else NONE


@function("(kubernetes.NamedFormat).validate(string) -> optional_type(list(string))", cost=lambda _, text: linear(text))
def _validate(form: Format, text: str) -> Optional:
    found = FORMATS[form.key](text)
    return Optional(found) if found else NONE
