"""The policies of other libraries and their counterparts: the table of other_libraries.yaml."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).parent / "other_libraries.yaml"


@cache
def table() -> dict[str, Any]:
    """Return the folders of libraries, each with the rows of its policies."""
    libraries: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return libraries


def nearest(name: str) -> str:
    """Return the nearest equivalent of a Kyverno policy or a kind of Gatekeeper's library."""
    for folder in table()["folders"]:
        for row in folder["rows"]:
            if name in (row.get("kind"), row["there"].rpartition("/")[2]):
                return str(row["here"]) if row["here"] != "none" else ""
    return ""
