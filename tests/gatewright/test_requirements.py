"""The image is built from exact versions that pyproject.toml allows."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
REQUIREMENTS = (ROOT / "requirements.txt").read_text()


def test_the_image_has_all_dependencies():
    """Each has one version, within its range."""
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)", REQUIREMENTS, re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [Requirement(text) for text in project["dependencies"]]
    outside = [
        str(requirement)
        for requirement in asked
        if not requirement.specifier.contains(pinned[canonicalize_name(requirement.name)])
    ]
    assert outside == []


def test_each_version_has_its_hashes():
    """So pip installs nothing else with --require-hashes, which the image and the action use."""
    versions = re.split(r"^(?=[\w.-]+==)", REQUIREMENTS, flags=re.MULTILINE)[1:]
    assert [text for text in versions if "--hash=sha256:" not in text] == []
