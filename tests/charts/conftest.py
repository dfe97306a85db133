"""The chart, rendered by helm."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.charts.rendered import CHART, NAMESPACE, Rendered

Result = subprocess.CompletedProcess[str]


@pytest.fixture
def template(helm: Path) -> Callable[..., Result]:
    """`helm template` with `--set` expressions and values files."""

    def run(*sets: str, files: tuple[Path, ...] = (), release: str = "gatewright") -> Result:
        command = [helm, "template", release, CHART, "--namespace", NAMESPACE]
        command += [f"--values={file}" for file in files] + [f"--set={each}" for each in sets]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    return run


@pytest.fixture
def render(template: Callable[..., Result]) -> Callable[..., Rendered]:
    """The objects that `helm template` prints."""

    def run(*sets: str, **options: Any) -> Rendered:
        result = template(*sets, **options)
        assert result.returncode == 0, result.stderr
        objects = [each for each in yaml.safe_load_all(result.stdout) if each]
        return Rendered({(each["kind"], each["metadata"]["name"]): each for each in objects})

    return run
