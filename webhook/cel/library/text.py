"""Text: cel-go's strings extension and base64."""

import base64
import binascii
from typing import Any

from webhook.cel.errors import EvaluationError
from webhook.cel.functions import function, weigh

_UPPER = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_LOWER = {value: key for key, value in _UPPER.items()}
_SPACE = "".join(map(chr, (*range(9, 14), 32, 133, 160, 5760, *range(8192, 8203), 8232, 8233, 8239, 8287, 12288)))
_QUOTED = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def _check_index(index: int, last: float) -> None:
    if not 0 <= index <= last:
        raise EvaluationError(f"index out of range: {index}")


@function("(string).charAt(int) -> string")
def _char_at(text: str, index: int) -> str:
    _check_index(index, len(text))
    return text[index : index + 1]


@function("(string).indexOf(string, ?int) -> int", cost=weigh)
def _index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    _check_index(start, float("inf"))
    return text.find(part, start)


@function("(string).lastIndexOf(string, ?int) -> int", cost=weigh)
def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return text.rfind(part)
    if not part:
        return start
    _check_index(start, float("inf"))
    return -1 if start >= len(text) else text.rfind(part, 0, start + len(part))


function("(string).lowerAscii() -> string", cost=weigh)(lambda text: text.translate(_LOWER))
function("(string).upperAscii() -> string", cost=weigh)(lambda text: text.translate(_UPPER))
function("(string).trim() -> string", cost=weigh)(lambda text: text.strip(_SPACE))
function("(string).reverse() -> string", cost=weigh)(lambda text: text[::-1])
function("jsonpatch.escapeKey(string) -> string", cost=weigh)(lambda text: text.replace("~", "~0").replace("/", "~1"))


def _growth(text: str, old: str, new: str, *_: int) -> int:
    return (len(text) + text.count(old) * len(new)) >> 3


@function("(string).replace(string, string, ?int) -> string", cost=_growth)
def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    return text.replace(old, new, max(count, -1))


@function("(string).split(string, ?int) -> list(string)", cost=weigh)
def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if separator:
        return text.split(separator, count - 1 if count > 0 else -1)
    if 0 < count < len(text):
        return [*text[: count - 1], text[count - 1 :]]
    return list(text)


@function("(string).substring(int, ?int) -> string", cost=weigh)
def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is not None and start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    _check_index(start, len(text))
    _check_index(end or 0, len(text))
    return text[start:end]


def _joined_size(items: list[Any], separator: str = "") -> int:
    return (sum(len(item) for item in items if type(item) is str) + len(items) * (len(separator) + 1)) >> 2


@function("(list(string)).join(?string) -> string", cost=_joined_size)
def _join(items: list[Any], separator: str = "") -> str:
    if any(type(item) is not str for item in items):
        raise EvaluationError(f"no such overload: join{'(list, string)' if separator else '(list)'}")
    return separator.join(items)


@function("strings.quote(string) -> string", cost=weigh)
def quote(text: str) -> str:
    """Return `text` as a literal in double quotes."""
    return f'"{text.translate(_QUOTED)}"'


function("base64.encode(bytes) -> string", cost=weigh)(lambda value: base64.b64encode(value).decode())


@function("base64.decode(string) -> bytes", cost=weigh)
def _decode(text: str) -> bytes:
    bare = text.rstrip("=")
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise EvaluationError("illegal base64 data") from None
