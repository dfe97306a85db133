"""Read the manifests that a command line names: files, globs, charts, kustomizations."""

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from config.documents import Document, DocumentError, read_documents, read_stdin
from config.printable import printable
from gatewright.checks.rendering import NotRenderedError, Renderer, kustomize
from gatewright.console.chart_options import ChartOptions
from webhook.harness.objects import is_object

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

SUFFIXES = frozenset({".yaml", ".yml", ".json"})
IGNORE_FILE = ".gatewrightignore"
CHART = "Chart.yaml"
KUSTOMIZATIONS = frozenset({"kustomization.yaml", "kustomization.yml", "Kustomization"})
NO_OBJECTS = "no Kubernetes objects"


@dataclass(slots=True)
class Sources:
    """The documents with objects, the ones to judge, read errors, and notes."""

    documents: list[Document] = field(default_factory=list)
    judged: list[Document] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_sources(
    manifests: Sequence[str], charts: ChartOptions, changed: frozenset[Path] | None = None
) -> Sources:
    """Return the objects in `manifests`.

    An unreadable or invalid file is a problem; the others are still read.

    Charts and kustomizations are rendered in parallel. With `changed` (resolved paths), only
    documents of those files are judged.
    """
    found, files = Sources(), dict[Path | None, Path | None]()
    for manifest in manifests:
        for path in _expanded(manifest, found):
            named = [None] if path is None else [*_files(path, found)]
            if path is not None and path.is_dir() and not named:
                but = f" but those that {IGNORE_FILE} lists" * _Ignored(path).is_in_use
                found.notes.append(f"{printable(path)}: no manifests{but}")
            for file in named:
                files.setdefault(file and _resolved(file), file)
    with Renderer(charts) as renderer:
        for file in files.values():
            if file is not None and file.is_dir():
                renderer.start(file)
        for file in files.values():
            _read(file, found, renderer, changed)
    return found


def _expanded(manifest: str, found: Sources) -> Iterator[Path | None]:
    """Yield the paths that an argument names; None is standard input."""
    if manifest == "-":
        yield None
    elif glob.has_magic(manifest) and not Path(manifest).exists():
        paths = sorted(glob.iglob(manifest, recursive=True))  # noqa: PTH207
        if not paths:
            found.problems.append(f"{printable(manifest)}: no file matches")
        yield from (path for each in paths if (path := Path(each)).is_dir() or _is_manifest(each))
    else:
        yield Path(manifest)


def _files(path: Path, found: Sources, unrendered: Path | None = None) -> Iterator[Path]:
    """Yield a file, the manifests of a directory, or the directory of a chart or kustomization.

    The files of the kustomization in the directory `unrendered` are yielded without rendering.
    """
    ignored = _Ignored(path)
    if not path.is_dir():
        if ignored(path):
            found.notes.append(f"{printable(path)}: skipped: listed in {IGNORE_FILE}")
        else:
            yield path
        return

    def unreadable(error: OSError) -> None:
        found.problems.append(f"{printable(error.filename)}: {error.strerror}")

    for directory, folders, names in os.walk(path, onerror=unreadable):
        here = Path(directory)
        folders[:] = sorted(
            each for each in folders if not each.startswith(".") and not ignored(here / each, "/")
        )
        files = sorted(
            name for name in names if not name.startswith(".") and not ignored(here / name)
        )
        is_kustomization = (
            bool(KUSTOMIZATIONS.intersection(files)) and here != unrendered and kustomize()
        )
        if CHART in files or is_kustomization:
            folders.clear()
            yield here
        else:
            manifests = (here / name for name in files if _is_manifest(name))
            # Reading a named pipe would wait for a writer.
            yield from (file for file in manifests if not file.is_fifo())


class _Ignored:
    """Tests whether an ignore file, of a directory or the working directory, lists a path."""

    def __init__(self, path: Path) -> None:
        roots = dict.fromkeys((_resolved(path), Path.cwd()))
        self._specs = [
            (root, _spec(root / IGNORE_FILE)) for root in roots if (root / IGNORE_FILE).is_file()
        ]
        self.is_in_use = bool(self._specs)

    def __call__(self, path: Path, end: str = "") -> bool:
        if not self._specs:
            return False
        whole = _resolved(path)
        return any(
            spec.match_file(f"{whole.relative_to(root).as_posix()}{end}")
            for root, spec in self._specs
            if whole.is_relative_to(root)
        )


def _spec(file: Path) -> "GitIgnoreSpec":
    # Imported here: few directories have such a file.
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(file.read_text("utf-8", "replace").splitlines())


def _read(
    file: Path | None, found: Sources, renderer: Renderer, changed: frozenset[Path] | None
) -> None:
    try:
        if file is None:
            documents = list(read_stdin())
        elif file.is_dir():
            documents = list(renderer.documents(file))
        else:
            documents = list(read_documents(file))
    except NotRenderedError as error:
        found.problems.append(str(error))
        return
    except DocumentError as error:
        found.problems.append(str(error))
        if file is not None and file.is_dir() and not (file / CHART).exists():
            # If the kustomization is broken, its objects are still judged.
            for each in _files(file, found, unrendered=file):
                _read(each, found, renderer, changed)
        return
    objects = [each for each in documents if is_object(each)]
    found.documents += objects
    if file is None or changed is None or _has_changed(file, changed):
        found.judged += objects
        if not objects:
            found.notes.append(f"{printable(file or '<stdin>')}: skipped: {NO_OBJECTS}")
        else:
            others = (each for each in documents if not is_object(each))
            found.notes += [f"{each.where()}: skipped: not a Kubernetes object" for each in others]


def _is_manifest(name: str) -> bool:
    return Path(name).suffix.lower() in SUFFIXES


def _has_changed(file: Path, changed: frozenset[Path]) -> bool:
    path = _resolved(file)
    return path in changed or (path.is_dir() and any(each.is_relative_to(path) for each in changed))


def _resolved(path: Path) -> Path:
    """Return the path without symbolic links; a loop of links, which cannot be read, is kept."""
    return Path(os.path.realpath(path))
