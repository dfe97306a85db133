"""Format objects as hand-written YAML: no anchors, and block style for multi-line text.

Text that could be a command of a CI, or change the direction of text, is escaped in quotes.
"""

import re
from collections.abc import Mapping
from typing import Any

import yaml

from config.printable import COMMAND_MARK
from config.yaml_scalars import ScalarError, resolve

# As in config.printable, and what a fold could move to the beginning of a line.
_UNSAFE_CHARACTERS = r"[\x85\u2028-\u202e\u2066-\u2069]"
UNSAFE = re.compile(rf"{_UNSAFE_CHARACTERS}|{COMMAND_MARK}|(?:^|\s)::")
ESCAPED = re.compile(rf"{_UNSAFE_CHARACTERS}|{COMMAND_MARK}|^\s*::", re.MULTILINE)


class Written(yaml.SafeDumper):
    """Writes shared values in full each time."""

    def ignore_aliases(self, data: Any) -> bool:
        """Repeat a value instead of an alias."""
        return True


def _text(dumper: Written, value: str) -> yaml.ScalarNode:
    if UNSAFE.search(value):
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style='"')
    style = "|" if "\n" in value else None if _is_text(value) else "'"
    is_folded = "'" in value and value == " ".join(value.split())
    if style is None and is_folded and not dumper.analyze_scalar(value).allow_block_plain:
        style = ">"  # in quotes, each quote would be doubled: expressions would be hard to read
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _is_text(value: str) -> bool:
    """Whether a plain scalar is text for kubectl too, unlike `y` and `1e3`."""
    try:
        return isinstance(resolve(value), str)
    except ScalarError:
        return False


Written.add_representer(str, _text)


def to_yaml(object: Mapping[str, Any], *, sort_keys: bool = False) -> str:
    """Return an object as YAML."""
    text: str = yaml.dump(
        dict(object), Dumper=Written, sort_keys=sort_keys, width=120, allow_unicode=True
    )
    return ESCAPED.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    """Return an escape of YAML's double quotes."""
    text = found[0]
    if text.endswith("::"):
        return text.removesuffix("::") + r"\x3a:"
    return "".join(f"\\u{ord(character):04x}" for character in text)
