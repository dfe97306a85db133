"""Render Helm charts and kustomizations with `helm`, `kustomize` or `kubectl`, if installed."""

import json
import os
import shutil
import subprocess
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, Self

from config.documents import Document, DocumentError, parse_documents
from config.positions import OneLine
from config.printable import printable
from gatewright.checks.charts import (
    CHART,
    require_own_files,
    require_own_schemas,
    silent_templates,
    without_repository,
)
from gatewright.checks.checked_tree import CheckedTree, resolve
from gatewright.checks.kustomizations import OVERLAY, OriginFiles
from gatewright.checks.programs import CompletedRun, Programs, reason_of
from gatewright.checks.template_places import ChartValues, TemplateFile
from gatewright.console.options import ChartOptions

SOURCE = "# Source: "  # the comment that Helm writes above each object: chart/templates/file.yaml
TIME_LIMIT = 60  # seconds
MAX_SECONDS = 20 * 60  # of all programs together
MAX_RENDERED = 256 << 20  # bytes of all that they write
AHEAD = 2 * (os.cpu_count() or 1)  # directories that are rendered before they are read


class NotRenderedError(Exception):
    """The program that renders a directory is not installed."""


class RenderedText(NamedTuple):
    """What a program printed for a directory.

    `base` is the directory that origins of objects are relative to.
    """

    text: bytes
    base: Path


class Renderer:
    """Renders directories in parallel, one per core."""

    def __init__(self, charts: ChartOptions) -> None:
        """Use these options for charts."""
        self._charts = charts
        self._programs = Programs()
        self._pool = ThreadPoolExecutor(os.cpu_count())
        # In the order in which they are read: what is rendered ahead of that takes memory.
        self._waiting = deque[tuple[Path, CheckedTree]]()
        self._started: dict[Path, Future[RenderedText]] = {}
        self._seconds = self._bytes = 0.0  # of all programs so far
        self._origins = OriginFiles()
        self._tells_origins = True
        self._rendered: dict[Path, frozenset[str]] = {}

    def __enter__(self) -> Self:
        self._programs.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._programs.__exit__()
        self._pool.shutdown(cancel_futures=True)

    def start(self, file: Path, tree: CheckedTree) -> None:
        """Render the chart or kustomization of a Chart.yaml or kustomization.yaml.

        Those that were started earlier are rendered earlier.
        """
        self._waiting.append((file, tree))
        self._start_next()

    def _start_next(self) -> None:
        """Start the next ones, as many as are rendered at a time."""
        while self._waiting and len(self._started) < AHEAD:
            file, tree = self._waiting.popleft()
            render = self._render if file.name == CHART else self._build
            self._started[file] = self._pool.submit(
                self._render_within_limits, render, file.parent, tree
            )

    def _render_within_limits(
        self,
        render: Callable[[Path, CheckedTree], RenderedText],
        directory: Path,
        tree: CheckedTree,
    ) -> RenderedText:
        """Render a directory, unless the others took all there is."""
        if self._seconds > MAX_SECONDS or self._bytes > MAX_RENDERED:
            raise DocumentError(
                f"{printable(directory)}: not judged: the charts and kustomizations before it took "
                f"more than {MAX_SECONDS // 60} minutes, or rendered more than "
                f"{MAX_RENDERED >> 20} MiB; judge it in a run of its own"
            )
        began = time.monotonic()
        try:
            rendered = render(directory, tree)
        finally:
            self._seconds += time.monotonic() - began
        self._bytes += len(rendered.text)
        return rendered

    def documents(self, file: Path) -> Iterator[Document]:
        """Yield the objects of a chart or kustomization that was started.

        Raises NotRenderedError if the program is missing, DocumentError if it fails.
        """
        started = self._started.pop(file)
        self._start_next()
        text, base = started.result()
        self._tells_origins &= base != file.parent or file.name == CHART
        directory = file.parent
        if file.name == CHART:
            self._rendered[file] = frozenset(
                line.removeprefix(SOURCE).partition("/")[2].strip()
                for line in text.decode(errors="replace").splitlines()
                if line.startswith(SOURCE)
            )
            yield from _of_templates(directory, text, ChartValues(directory, self._charts))
            return
        for document in parse_documents(text, str(file)):
            yield self._origins.place(document, file, base)

    def omits(self, file: Path) -> bool:
        """Whether the kustomizations so far leave out an object of one of their plain files."""
        return self._tells_origins and self._origins.omits(file)

    def silent(self, file: Path) -> Iterator[Path]:
        """Yield the templates of a rendered chart that render nothing; none of a kustomization."""
        if file in self._rendered:
            yield from silent_templates(file.parent, self._rendered[file])

    def _render(self, directory: Path, tree: CheckedTree) -> RenderedText:
        """Render a chart."""
        helm = shutil.which("helm")
        if helm is None:
            raise NotRenderedError(
                f"{directory}: not judged: a Helm chart, and helm is not installed. Install helm, "
                "or list the directory in .gatewrightignore"
            )
        require_own_files(directory, tree)
        require_own_schemas(directory)
        for file in map(Path, self._charts.values):
            CheckedTree.of(file).require_link(file)
        with TemporaryDirectory() as temporary:
            chart = without_repository(directory, Path(temporary))
            # An absolute path: a directory may have the name of an option.
            command = [helm, "template", self._charts.release_name, str(chart.absolute())]
            command += [*self._charts.arguments, "--include-crds"]
            return RenderedText(self._output(command, directory), directory)

    def _build(self, directory: Path, _: CheckedTree) -> RenderedText:
        """Build a kustomization."""
        with TemporaryDirectory() as temporary:
            overlay = Path(temporary).resolve()
            below = os.path.relpath(directory.resolve(), overlay)
            (overlay / "kustomization.yaml").write_text(OVERLAY.format(json.dumps(below)))
            done = self._run([*kustomize(), temporary], directory)
            if done.code == 0:
                return RenderedText(done.out, overlay)
            # This error does not name the overlay, and an old kustomize has no origins.
            command = [*kustomize(), str(directory.absolute())]
            return RenderedText(self._output(command, directory), directory)

    def _output(self, command: Sequence[str], directory: Path) -> bytes:
        done = self._run(command, directory)
        if done.code:
            program = f"{Path(command[0]).name} {command[1]}"
            why = reason_of(done, directory)
            raise DocumentError(f"{printable(directory)}: {program} failed: {why}")
        return done.out

    def _run(self, command: Sequence[str], directory: Path) -> CompletedRun:
        try:
            return self._programs.run(command, TIME_LIMIT)
        except subprocess.TimeoutExpired:
            raise DocumentError(
                f"{printable(directory)}: {Path(command[0]).name} did not finish within "
                f"{TIME_LIMIT} s"
            ) from None


def kustomize() -> Sequence[str]:
    """Return the command that builds a kustomization, without the directory.

    Empty if no program is installed.
    """
    if path := shutil.which("kustomize"):
        return path, "build"
    path = shutil.which("kubectl")
    return (path, "kustomize") if path else ()


def _of_templates(directory: Path, text: bytes, values: ChartValues) -> Iterator[Document]:
    """Yield the objects of a chart with the lines of their templates and values."""
    lines = text.decode(errors="replace").splitlines()
    sources = deque((row, line) for row, line in enumerate(lines, 1) if line.startswith(SOURCE))
    template, counts = CHART, Counter[tuple[str, str]]()
    templates: dict[str, TemplateFile | None] = {}
    for document in parse_documents(text, str(directory / template)):
        while sources and sources[0][0] <= document.line():
            template = sources.popleft()[1].removeprefix(SOURCE).partition("/")[2]
        if template not in templates:
            templates[template] = _template(directory, template, values)
        template_file, file = templates[template], directory / template
        kind = str(document.value.get("kind")) if isinstance(document.value, dict) else ""
        number = counts[template, kind]
        places = OneLine() if template_file is None else template_file.places(kind, number)
        counts[template, kind] += 1
        # A template can write any name.
        is_outside = template_file is None and not _is_below(file, directory)
        source = directory / CHART if is_outside else file
        yield replace(document, source=str(source), lines=places)


def _template(directory: Path, name: str, values: ChartValues) -> TemplateFile | None:
    """Return a template of a chart; None if there is no such file in the chart."""
    file = directory / name
    if not (_is_below(file, directory) and file.is_file()):
        return None
    # A subchart has its own values.
    own = None if name.startswith("charts/") else values
    return TemplateFile(file.read_text(errors="replace"), own)


def _is_below(file: Path, directory: Path) -> bool:
    return resolve(file).is_relative_to(resolve(directory))
