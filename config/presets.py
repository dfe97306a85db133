"""Presets: the policy sets that come with Gatewright, found by name."""

import re
from pathlib import Path

from config.faults import did_you_mean

DIRECTORY = Path(__file__).parent / "policies"
CASES = Path(__file__).parent / "cases"
NAME = re.compile(r"[a-z][a-z-]*")
ALL = "all"  # the presets together


def presets() -> dict[str, Path]:
    """Return the file of each preset, by name."""
    return {path.stem: path for path in sorted(DIRECTORY.glob("*.yaml"))}


def case_file(preset: str) -> Path:
    """Return the file of the cases that a preset carries."""
    return CASES / f"{preset}.yaml"


def summary_of(preset: Path) -> str:
    """Return the summary of a preset: the first sentence of its comment."""
    return preset.read_text().removeprefix("# ").split(".", 1)[0].replace("\n# ", " ")


def policy_path(text: str, directory: Path = Path()) -> Path:
    """Return the file or directory that a text refers to: a preset, `all` of them, or a path.

    A path is relative to `directory`. To refer to a file that is named like a preset, write a path
    such as `./baseline`. Raises ValueError if there is neither a preset nor a file of this name.
    """
    paths = presets()
    if text == ALL:
        return DIRECTORY
    if text in paths:
        return paths[text]
    path = directory / text
    if NAME.fullmatch(text) and not path.exists():
        suggestion = did_you_mean(text, (*paths, ALL))
        raise ValueError(f"{text}: no such file or directory, and no preset{suggestion}")
    return path
