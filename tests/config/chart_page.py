"""Generate the chart's README: its values, with the comments of values.yaml, and the rights of each kind."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

KEY = re.compile(r"( *)(\w+):")
LONG = 60

PAGE = """\
<!-- Generated from values.yaml by `make manifests`; do not edit. -->

# The chart of Gatewright

Helm 3 or 4, Kubernetes 1.31 or newer. [How to install, upgrade and uninstall it](../../docs/operations.md).

{about}

| Key | Default | Meaning |
| --- | --- | --- |
"""
RIGHTS = """
## Rights

What the controller may do in every namespace, for each kind that it reconciles. `kinds` is empty by default: all of
them. Name the kinds that you use, and the kinds of their children, to narrow the rights. `kinds: [none]` is policies
only.

| Kind | Create, change, delete | Create and change | Create only | Change and delete | Delete only | Change only | Read only |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""
COLUMNS = (
    ("create", "delete", "patch"),
    ("create", "patch"),
    ("create",),
    ("delete", "patch"),
    ("delete",),
    ("patch",),
    (),
)


def page(text: str, rights: Mapping[str, Sequence[Mapping[str, list[str]]]]) -> str:
    """Return the page for a values.yaml, whose first comment is about all values, and the rules of each kind."""
    about = text.partition("\n\n")[0].replace("# ", "")
    cells = ((f"`{path}`", _default(value), meaning) for path, value, meaning in rows(text))
    lines = (" | ".join(each.replace("|", "\\|") for each in row) for row in cells)
    values = "".join(f"| {line} |\n" for line in lines)
    return (
        PAGE.format(about=about)
        + values
        + RIGHTS
        + "".join(_row(kind, rules) for kind, rules in rights.items())
    )


def _row(kind: str, rules: Sequence[Mapping[str, list[str]]]) -> str:
    """Return the line about the rights of a kind; statuses, finalizers and events are left out."""
    cells: dict[tuple[str, ...], list[str]] = {column: [] for column in COLUMNS}
    for rule in rules:
        verbs = tuple(verb for verb in ("create", "delete", "patch") if verb in rule["verbs"])
        cells[verbs] += [resource for resource in rule["resources"] if "/" not in resource]
    return f"| {kind} | " + " | ".join(", ".join(names) for names in cells.values()) + " |\n"


def rows(text: str) -> Iterator[tuple[str, Any, str]]:
    """Yield each value's path, default and meaning; a mapping with a comment counts as one value."""
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
    written = (
        yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1000)
        .removesuffix("...\n")
        .strip()
    )
    return f"`{written}`" if len(written) <= LONG else "[values.yaml](values.yaml)"
