"""The chart's README: a table of its values, made from values.yaml and the comments in it."""

import re
from collections.abc import Iterator
from typing import Any

import yaml

KEY = re.compile(r"( *)(\w+):")
LONG = 60

PAGE = """\
<!-- Generated from values.yaml by `make manifests`; do not edit. -->

# The chart of Gatewright

Helm 3 or 4, Kubernetes 1.31 or newer. [Installing, upgrading, uninstalling](../../README.md#install).

{about}

| Key | Default | Meaning |
| --- | --- | --- |
"""


def page(text: str) -> str:
    """Return the page for a values.yaml: its first comment is about all of them."""
    about = text.partition("\n\n")[0].replace("# ", "")
    cells = ((f"`{path}`", _default(value), meaning) for path, value, meaning in rows(text))
    lines = (" | ".join(each.replace("|", "\\|") for each in row) for row in cells)
    return PAGE.format(about=about) + "".join(f"| {line} |\n" for line in lines)


def rows(text: str) -> Iterator[tuple[str, Any, str]]:
    """Yield each value's path, default and meaning; a mapping with a comment is one value, whatever is in it."""
    values, path, comment, told = yaml.safe_load(text), list[str](), list[str](), "-"
    for line in text.splitlines():
        found = KEY.match(line)
        if line.strip().startswith("#"):
            comment.append(line.strip("# "))
            continue
        if found is not None:
            path[len(found[1]) // 2 :] = [found[2]]
            name = ".".join(path)
            if not name.startswith(told):
                value = _at(values, path)
                if comment or not value or not isinstance(value, dict):
                    told = f"{name}."
                    yield name, value, " ".join(comment)
        comment = []


def _at(value: Any, path: list[str]) -> Any:
    for key in path:
        value = value[key]
    return value


def _default(value: Any) -> str:
    written = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1000).removesuffix("...\n").strip()
    return f"`{written}`" if len(written) <= LONG else "[values.yaml](values.yaml)"
