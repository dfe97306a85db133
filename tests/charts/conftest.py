"""The chart, rendered by helm."""

import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from config.documents import parse_documents
from tests.charts.rendered import CHART, NAMESPACE, Rendered

Result = subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def render_once(helm: Path) -> Callable[..., Result]:
    """Call helm with arguments, once for equal ones with the same values files."""

    @cache
    def run(arguments: tuple[str, ...], files: tuple[Path, ...], texts: tuple[str, ...]) -> Result:
        command = [helm, "template", *arguments, *(f"--values={file}" for file in files)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    return run


@pytest.fixture
def template(render_once: Callable[..., Result]) -> Callable[..., Result]:
    """`helm template` with `--set` expressions and values files."""

    def run(
        *sets: str,
        files: tuple[Path, ...] = (),
        release: str = "gatewright",
        namespace: str = NAMESPACE,
        hooks: bool = False,
    ) -> Result:
        arguments = [release, str(CHART), "--namespace", namespace]
        arguments += [] if hooks else ["--no-hooks"]
        arguments += [f"--set={each}" for each in sets]
        return render_once(tuple(arguments), files, tuple(file.read_text() for file in files))

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
