"""Render Helm charts and kustomizations with `helm`, `kustomize` or `kubectl`, if installed."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from config.documents import Document, DocumentError, parse_documents
from config.lines import OneLine

SOURCE = "# Source: "  # the comment that Helm writes above each object: chart/templates/file.yaml
TIME_LIMIT = 60  # seconds


class NotRenderedError(Exception):
    """The program that renders a directory is not installed."""


def kustomize() -> Sequence[str]:
    """Return the command that builds a kustomization, without the directory.

    Empty if no program is installed.
    """
    if path := shutil.which("kustomize"):
        return path, "build"
    path = shutil.which("kubectl")
    return (path, "kustomize") if path else ()


def rendered(directory: Path, namespace: str) -> Iterator[Document]:
    """Yield the objects of the chart or kustomization in a directory, as a release in `namespace`.

    Raises NotRenderedError if the program is missing, DocumentError if it fails.
    """
    if (directory / "Chart.yaml").exists():
        yield from _chart(directory, namespace)
    else:
        text = _output([*kustomize(), str(directory)], directory)
        for document in parse_documents(text, str(directory / "kustomization.yaml")):
            yield replace(document, lines=OneLine(), is_exact=False)


def _chart(directory: Path, namespace: str) -> Iterator[Document]:
    helm = shutil.which("helm")
    if helm is None:
        raise NotRenderedError(
            f"{directory}: not judged: a Helm chart, and helm is not installed. Install helm, or "
            "list the directory in .gatewrightignore"
        )
    text = _output(
        [helm, "template", "release-name", str(directory), "--namespace", namespace], directory
    )
    lines = text.decode(errors="replace").splitlines()
    for document in parse_documents(text, str(directory / "Chart.yaml")):
        above = lines[: document.line() - 1]
        comment = next((line for line in reversed(above) if line.startswith(SOURCE)), None)
        template = (
            "Chart.yaml" if comment is None else comment.removeprefix(SOURCE).partition("/")[2]
        )
        yield replace(document, source=str(directory / template), lines=OneLine(), is_exact=False)


def _output(command: Sequence[str], directory: Path) -> bytes:
    program = Path(command[0]).name
    try:
        done = subprocess.run(  # noqa: S603
            command, check=False, capture_output=True, timeout=TIME_LIMIT, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise DocumentError(
            f"{directory}: {program} did not finish within {TIME_LIMIT} s"
        ) from None
    if done.returncode:
        message = " ".join(done.stderr.decode(errors="replace").split())
        raise DocumentError(f"{directory}: {program} {command[1]} failed: {message[:500]}")
    return done.stdout
