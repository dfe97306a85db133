"""Format objects as hand-written YAML: no anchors, and block style for multi-line text."""

from collections.abc import Mapping
from typing import Any

import yaml

from config.yaml_scalars import ScalarError, resolve


class Written(yaml.SafeDumper):
    """Writes shared values in full each time."""

    def ignore_aliases(self, data: Any) -> bool:
        """Repeat a value instead of an alias."""
        return True


def _text(dumper: Written, value: str) -> yaml.ScalarNode:
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
    return text
