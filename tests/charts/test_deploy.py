"""The image built by `make docker-build` is the one in the chart, the manifests and the docs."""

import itertools
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from gatewright import __version__

ROOT = Path(__file__).parents[2]


def planned(*arguments: str) -> list[str]:
    """Return the words of the commands that make would run."""
    command = ["make", "--dry-run", "--no-print-directory", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=True
    ).stdout.split()


def tags(*arguments: str) -> list[str]:
    """Return the image names of `make docker-build`."""
    words = planned("docker-build", *arguments)
    return [name for option, name in itertools.pairwise(words) if option == "--tag"]


def test_every_page_names_the_built_image():
    """There is one name; both spellings of a version are tags of the same image."""
    assert tags() == [f"gatewright:{__version__}", f"gatewright:v{__version__}"]
    chart = yaml.safe_load((ROOT / "charts/gatewright/Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
    manager = (ROOT / "config/manager/manager.yaml").read_text()
    asked = {"config/manager": re.findall(r"image: (gatewright:\S+)", manager)}
    for page in ("README.md", "docs/kind.md"):
        asked[page] = re.findall(r"\b(gatewright:v?[0-9][0-9.]*[0-9])", (ROOT / page).read_text())
    assert {name for names in asked.values() for name in names} == {f"gatewright:{__version__}"}
    assert asked["config/manager"]
    assert asked["docs/kind.md"]


def test_an_image_may_have_another_name():
    """A version in another registry gets both tags; any other tag only itself."""
    assert tags(f"IMG=localhost:5001/g:{__version__}") == [
        f"localhost:5001/g:{__version__}",
        f"localhost:5001/g:v{__version__}",
    ]
    assert tags("IMG=localhost:5001/g:2026") == ["localhost:5001/g:2026"]


@pytest.mark.parametrize(
    ("image", "repository", "tag"),
    [
        ("gatewright:v1", "gatewright", "v1"),
        ("localhost:5001/gatewright:2026", "localhost:5001/gatewright", "2026"),
        (
            "registry.example.com:443/team/gatewright:v1",
            "registry.example.com:443/team/gatewright",
            "v1",
        ),
    ],
)
def test_the_registry_may_have_a_port(image, repository, tag):
    """The tag follows the last colon, and is a string even if it consists of digits."""
    told = planned("deploy", f"IMG={image}")
    assert told[told.index("--set") + 1] == f"image.repository={repository}"
    assert told[told.index("--set-string") + 1] == f"image.tag={tag}"


@pytest.mark.controlplane
def test_the_packaged_chart_names_the_published_image(helm: Path):
    """It has the image of the release; its alerts and its home page link to the project."""
    url = "https://git.example.com/team/gatewright"
    image = f"IMG=registry.example.com/team/gatewright:{__version__}"
    command = ["make", "package-chart", image, f"URL={url}", f"HELM={helm}"]
    subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=True)
    package = ROOT / f"dist/gatewright-{__version__}.tgz"

    def shown(what: str) -> dict[str, object]:
        text = subprocess.run(
            [helm, "show", what, package], capture_output=True, text=True, timeout=60, check=True
        )
        return dict(yaml.safe_load(text.stdout))

    assert (shown("chart")["home"], shown("chart")["sources"]) == (url, [url])
    assert shown("values")["image"]["repository"] == "registry.example.com/team/gatewright"
    assert (
        shown("values")["prometheusRule"]["runbook"] == f"{url}/blob/v{__version__}/docs/running.md"
    )
