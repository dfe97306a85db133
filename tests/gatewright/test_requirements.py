"""The image is built from exact versions that pyproject.toml allows."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def test_the_image_has_all_dependencies():
    """Each has one version, within its range."""
    lines = [
        line
        for line in (ROOT / "requirements.txt").read_text().splitlines()
        if not line.startswith("#")
    ]
    pinned = dict(line.split("==") for line in lines)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [Requirement(text) for text in project["dependencies"]]
    outside = [
        str(each)
        for each in asked
        if not each.specifier.contains(pinned[canonicalize_name(each.name)])
    ]
    assert outside == []
