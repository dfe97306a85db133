"""`make deploy` gives the chart the image that was built."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("image", "repository", "tag"),
    [
        ("gatewright:v1", "gatewright", "v1"),
        ("localhost:5001/gatewright:2026", "localhost:5001/gatewright", "2026"),
        ("registry.example.com:443/team/gatewright:v1", "registry.example.com:443/team/gatewright", "v1"),
    ],
)
def test_the_image_may_have_a_port(image, repository, tag):
    """The tag is what follows the last colon, and is text even where it is digits."""
    command = ["make", "--dry-run", "--no-print-directory", "deploy", f"IMG={image}"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=True).stdout.split()
    assert told[told.index("--set") + 1] == f"image.repository={repository}"
    assert told[told.index("--set-string") + 1] == f"image.tag={tag}"
