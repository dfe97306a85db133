"""The chart, rendered by helm."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from config.documents import parse_documents
from tests.charts.rendered import CHART, NAMESPACE, Rendered

Result = subprocess.CompletedProcess[str]


@pytest.fixture
def template(helm: Path) -> Callable[..., Result]:
    """`helm template` with `--set` expressions and values files."""

    def run(
        *sets: str,
        files: tuple[Path, ...] = (),
        release: str = "gatewright",
        namespace: str = NAMESPACE,
        hooks: bool = False,
    ) -> Result:
        command = [
            helm,
            "template",
            release,
            CHART,
            "--namespace",
            namespace,
            *(() if hooks else ("--no-hooks",)),
        ]
        command += [f"--values={file}" for file in files] + [f"--set={each}" for each in sets]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    return run


@pytest.fixture
def render(template: Callable[..., Result]) -> Callable[..., Rendered]:
    """The objects that `helm template` prints."""

    def run(*sets: str, **options: Any) -> Rendered:
        result = template(*sets, **options)
        assert result.returncode == 0, result.stderr
        objects = [each.value for each in parse_documents(result.stdout.encode(), "helm template")]
        return Rendered({(each["kind"], each["metadata"]["name"]): each for each in objects})

    return run
