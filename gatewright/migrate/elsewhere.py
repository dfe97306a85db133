"""The policies of other libraries and their counterparts: the table of elsewhere.yaml."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).parent / "elsewhere.yaml"


@cache
def table() -> dict[str, Any]:
    """Return the folders of libraries, each with the rows of its policies."""
    found: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return found


def nearest(name: str) -> str:
    """Return what comes nearest to a policy of Kyverno's or a kind of Gatekeeper's library."""
    for folder in table()["folders"]:
        for row in folder["rows"]:
            if name in (row.get("kind"), row["there"].rpartition("/")[2]):
                return str(row["here"]) if row["here"] != "none" else ""
    return ""


def page() -> str:
    """Return docs/policies-from-elsewhere.md."""
    return "\n".join([table()["introduction"], *_folders()]).rstrip() + "\n"


def _folders() -> Iterator[str]:
    for folder in table()["folders"]:
        yield f"## {folder['title']}\n\n| There | Here | Beside it |\n| --- | --- | --- |"
        for row in folder["rows"]:
            beside = row.get("beside", "")
            yield f"| {row['there']} | {row['here']} | {beside}{' ' if beside else ''}|"
        yield f"\n{folder['after']}" if "after" in folder else ""
