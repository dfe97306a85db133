"""Kubernetes' named formats: `format.dns1123Label().validate(text)` is an optional list."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from config.regexes import compile_regex
from webhook.cel.cost import NO_MORE
from webhook.cel.functions import declare, fault
from webhook.cel.library.times import parse_timestamp
from webhook.cel.library.urls import parse_url
from webhook.cel.values import NAMES, NONE, Optional


@dataclass(frozen=True, slots=True)
class FormatRule:
    """A pattern, the maximum length in bytes, and the API server's description of valid text."""

    pattern: str
    longest: int
    form: str
    examples: str

    @property
    def error(self) -> str:
        """The API server's error for a text that does not match."""
        return f"{self.form} (e.g. {self.examples}, regex used for validation is '{self.pattern}')"

    def __call__(self, text: str) -> list[str]:
        """Return the errors of a text."""
        is_long = len(text.encode()) > self.longest
        errors = [f"must be no more than {self.longest} bytes"] if is_long else []
        return errors if _is(self.pattern, text) else [*errors, self.error]


_LOWER = "must consist of lower case alphanumeric characters"
_ENDS = "must start and end with an alphanumeric character"
_ALPHA = f"must consist of alphanumeric characters, '-', '_' or '.', and {_ENDS}"
_VALUE = _ALPHA.replace("must", "must be an empty string or", 1)
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_1035 = (
    f"a DNS-1035 label {_LOWER} or '-', start with an alphabetic character, and end with an "
    "alphanumeric character"
)

LABEL = FormatRule(
    _LABEL,
    63,
    f"a lowercase RFC 1123 label {_LOWER} or '-', and {_ENDS}",
    "'my-name',  or '123-abc'",
)
LABEL_1035 = FormatRule("[a-z]([-a-z0-9]*[a-z0-9])?", 63, _1035, "'my-name',  or 'abc-123'")
_SUBDOMAIN = f"a lowercase RFC 1123 subdomain {_LOWER}, '-' or '.', and {_ENDS}"
SUBDOMAIN = FormatRule(rf"{_LABEL}(\.{_LABEL})*", 253, _SUBDOMAIN, "'example.com'")
LABEL_VALUE = FormatRule(
    f"({_NAME})?", 63, f"a valid label {_VALUE}", "'MyValue',  or 'my_value',  or '12345'"
)
NAME_PART = FormatRule(_NAME, 63, _ALPHA, "'MyName',  or 'my.name',  or '123-abc'")
_UUID = "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"
_BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"


@cache
def _compile(pattern: str) -> Any:
    return compile_regex(pattern)


def _is(pattern: str, text: str) -> bool:
    return _compile(pattern).fullmatch(text.encode()) is not None


def _label(text: str) -> list[str]:
    dots = _is(SUBDOMAIN.pattern, text)
    return [
        "must not contain dots" if dots and error == LABEL.error else error for error in LABEL(text)
    ]


def _qualified_name(text: str) -> list[str]:
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        form = f"a valid label key {NAME_PART.error}"
        return [f"{form} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    errors = [f"prefix part {each}" for each in SUBDOMAIN(prefix)] if prefix else []
    errors += ["prefix part must be non-empty"] if slash and not prefix else []
    errors += [] if name else ["name part must be non-empty"]
    return errors + [f"name part {each}" for each in NAME_PART(name)]


def _allow_dash(validate: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Return the validation of a prefix, which may end with a dash."""
    return lambda text: validate(f"{text[:-1]}a" if text.endswith("-") else text)


def _parse(parse: Callable[[str], Any], text: str, message: str = "") -> list[str]:
    error = fault(parse, text)
    return [] if error is None else [message or str(error).partition(": ")[2]]


FORMATS: dict[str, Callable[[str], list[str]]] = {  # each returns the errors of a text
    "dns1123Label": _label,
    "dns1123LabelPrefix": _allow_dash(_label),
    "dns1123Subdomain": SUBDOMAIN,
    "dns1123SubdomainPrefix": _allow_dash(SUBDOMAIN),
    "dns1035Label": LABEL_1035,
    "dns1035LabelPrefix": _allow_dash(LABEL_1035),
    "labelValue": LABEL_VALUE,
    "qualifiedName": _qualified_name,
    "uuid": lambda text: [] if _is(_UUID, text) else ["does not match the UUID format"],
    "byte": lambda text: [] if _is(_BASE64, text) else ["invalid base64"],
    "uri": partial(_parse, parse_url),
    "date": lambda text: _parse(parse_timestamp, f"{text}T00:00:00Z", "invalid date"),
    "datetime": partial(_parse, parse_timestamp, message="invalid datetime"),
}


class Format(str):
    """A named format, by its name."""

    __slots__ = ()


NAMES[Format] = _OF = "kubernetes.NamedFormat"


def _validate(form: Format, text: str) -> Optional:
    errors = FORMATS[form](text)
    return Optional(errors) if errors else NONE


declare(
    *((f"format.{name}() -> {_OF}", lambda name=name: Format(name), NO_MORE) for name in FORMATS),
    (
        f"format.named(string) -> optional_type({_OF})",
        lambda name: Optional(Format(name)) if name in FORMATS else NONE,
        NO_MORE,
    ),
    (
        f"({_OF}).validate(string) -> optional_type(list(string))",
        _validate,
        lambda _, text: 60 + 4 * len(text),
    ),
)
