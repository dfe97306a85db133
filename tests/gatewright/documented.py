"""The code of docs/controllers.md, extracted to run as printed."""

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "controllers.md"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def blocks() -> dict[str, str]:
    """Return the Python blocks by the first word of their docstrings: Gear, Widgets, Logs; and the tests."""
    found = [match[1] for match in BLOCK.finditer(PAGE.read_text())]
    return {
        re.split(r"[: ]", text.removeprefix('"""'))[0] if text.startswith('"""') else "tests": text
        for text in found
    }


def executed(text: str, **names: Any) -> dict[str, Any]:
    """Return the names that a block defines; its line numbers are those of the page."""
    space = {"__name__": "documented", **names}
    above = PAGE.read_text().partition(text)[0].count("\n")
    exec(compile("\n" * above + text, str(PAGE), "exec"), space)
    return space
