"""What a Helm chart reads: its directory, links in it followed, and what its schemas refer to.

By the schemas of its values, helm would read files of the machine, and URLs.
"""

import gzip
import os
import posixpath
import re
import tarfile
import zlib
from collections.abc import Container, Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

from config.documents import DocumentError, parse_documents, read_documents, readable_documents
from config.printable import printable
from gatewright.checks.checked_tree import REPOSITORY, CheckedTree, resolve

CHART = "Chart.yaml"
PARTS = "charts"  # the directory with the charts that are parts of one
TEMPLATES = "templates"
SCHEMA = "values.schema.json"
CONSUMED = frozenset(  # what helm reads of a chart itself; templates may read any other file
    {
        CHART,
        "Chart.lock",
        "requirements.yaml",
        "requirements.lock",
        "values.yaml",
        SCHEMA,
        TEMPLATES,
        "crds",
    }
)
NO_ARCHIVE = (tarfile.TarError, OSError, EOFError, zlib.error)
MAX_FILES = 20_000  # of one chart, with its subcharts: helm keeps all of them in memory


def is_part(path: Path) -> bool:
    """Whether a chart, packed or not, is a part of another one."""
    parts = path.parent
    return parts.name == PARTS and (parts.parent / CHART).exists()


def silent_templates(chart: Path, rendered: Container[str]) -> Iterator[Path]:
    """Yield the templates of a chart, and of its parts, that render nothing.

    `rendered` has the other templates, as helm names them: `charts/part/templates/a.yaml`.
    """
    pending: list[tuple[Path, tuple[str, ...]]] = [(chart, ("",))]
    while pending:
        directory, prefixes = pending.pop()
        for file in sorted((directory / TEMPLATES).rglob("*.y*ml")):
            name = file.relative_to(directory).as_posix()
            if file.name[0] != "_" and not any(f"{each}{name}" in rendered for each in prefixes):
                yield file
        wanted = _description(directory).get("dependencies") or ()
        for part in sorted((directory / PARTS).glob(f"*/{CHART}")):
            name = str(_description(part.parent).get("name"))
            aliases = (
                str(dependency.get("alias"))
                for dependency in wanted
                if isinstance(dependency, dict) and dependency.get("name") == name
            )
            names = (part.parent.name, name, *aliases)
            below = tuple(f"{prefix}{PARTS}/{each}/" for prefix in prefixes for each in names)
            pending.append((part.parent, below))


def is_library(chart: Path) -> bool:
    """Whether a chart has only definitions for other charts; False if it cannot be read."""
    return _description(chart).get("type") == "library"


def chart_inputs(chart: Path) -> list[Path]:
    """Return the files and directories that a chart depends on.

    These are the chart, what links in it point to, and its dependencies in files.
    """
    inputs, pending = dict[Path, None](), [chart]
    while pending:
        directory = resolve(pending.pop())
        if directory in inputs or not directory.is_dir():
            continue
        inputs[directory] = None
        with suppress(DocumentError):  # reported when it is rendered
            inputs |= dict.fromkeys(
                resolve(path) for path in paths_of(directory) if path.is_symlink()
            )
        pending += (
            directory / repository.removeprefix("file://")
            for dependency in _description(directory).get("dependencies") or ()
            if isinstance(dependency, dict)
            and isinstance(repository := dependency.get("repository"), str)
            and repository.startswith("file://")
        )
    return [*inputs]


def _description(chart: Path) -> dict[str, Any]:
    """Return what Chart.yaml says; nothing if it cannot be read."""
    documents, faults = readable_documents(read_documents(chart / CHART))
    value = documents[0].value if documents and not faults else {}
    return value if isinstance(value, dict) else {}


def require_own_files(chart: Path, tree: CheckedTree) -> None:
    """Raise DocumentError if a chart has a link out of the tree, which helm would follow."""
    count = 0
    for count, path in enumerate(paths_of(chart), 1):
        if count > MAX_FILES:
            raise DocumentError(f"{printable(chart)}: not judged: more than {MAX_FILES} files")
        if path.is_symlink():
            tree.require_link(path)


def paths_of(chart: Path) -> Iterator[Path]:
    """Yield all files and directories of a chart, as helm finds them."""
    pending, seen = [chart], set[Path]()
    while pending:
        directory = pending.pop()
        if (whole := resolve(directory)) in seen:
            continue
        seen.add(whole)
        try:
            with os.scandir(directory) as listing:
                entries = [Path(each.path) for each in listing]
        except OSError as error:
            raise DocumentError(f"{printable(directory)}: {error.strerror}") from None
        for path in entries:
            is_directory = path.is_dir()
            if is_directory and path.name == REPOSITORY and directory != chart:
                raise DocumentError(f"{printable(path)}: not read: a repository in a chart")
            if path.name != REPOSITORY:
                yield path
                if is_directory:
                    pending.append(path)


def without_repository(chart: Path, temporary: Path) -> Path:
    """Return a chart without its .git directory, which templates could read.

    It consists of links in the empty directory `temporary`, if the chart has one.
    """
    if not (chart / REPOSITORY).exists():
        return chart
    for path in resolve(chart).iterdir():
        if path.name != REPOSITORY:
            (temporary / path.name).symlink_to(path)
    return temporary


MAX_BYTES = 4 << 20  # of a schema
MAX_UNPACKED = 256 << 20  # bytes of all archives of a chart
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef", "$schema")
OWN = re.compile(r"#|https?://json-schema\.org/")  # helm has the latter built in


def require_own_schemas(chart: Path) -> None:
    """Raise DocumentError if a values schema refers to something outside of itself.

    Those of the chart's parts, packed or not, are among them.
    """
    for place, data in _schemas(chart):
        if len(data) > MAX_BYTES:
            raise DocumentError(f"{place}: not judged: larger than {MAX_BYTES >> 20} MiB")
        documents, faults = readable_documents(parse_documents(data, place))
        if faults:
            raise DocumentError(faults[0])
        for document in documents:
            for key, named in _references(document.value):
                if not OWN.match(named):
                    raise DocumentError(
                        f"{place}: not judged: {key} {printable(named)} is not in the schema "
                        "itself; copy it there"
                    )


def _schemas(chart: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the place and the content of each schema."""
    archives, total = list[tuple[str, bytes]](), 0
    for path in paths_of(chart):
        if path.name == SCHEMA and path.is_file():
            yield printable(path), _read(path, MAX_BYTES)
        elif path.suffix == ".tgz" and path.parent.name == PARTS and path.is_file():
            archives.append((printable(path), _read(path, MAX_UNPACKED)))
    while archives:
        place, packed = archives.pop()
        with gzip.open(BytesIO(packed)) as file:
            try:
                data = file.read(MAX_UNPACKED - total + 1)
            except NO_ARCHIVE as error:
                raise DocumentError(f"{place}: not judged: no archive: {error}") from None
        total += len(data)
        if total > MAX_UNPACKED:
            raise DocumentError(f"{place}: not judged: larger than {MAX_UNPACKED >> 20} MiB")
        for name, content in _files(data, place):
            if name == SCHEMA:
                yield f"{place}: {SCHEMA}", content
            elif name.endswith(".tgz"):
                archives.append((place, content))


def _files(data: bytes, place: str) -> Iterator[tuple[str, bytes]]:
    """Yield the names, without directories, and the contents of an archive's files."""
    try:
        with tarfile.open(fileobj=BytesIO(data), mode="r:") as archive:
            for entry in archive:
                # As helm reads a name.
                name = posixpath.basename(posixpath.normpath(entry.name.replace("\\", "/")))
                is_link = entry.isdir() or entry.issym() or entry.islnk()
                content = None if is_link else archive.extractfile(entry)
                if content is not None and (name == SCHEMA or name.endswith(".tgz")):
                    yield name, content.read()
    except NO_ARCHIVE as error:
        raise DocumentError(f"{place}: not judged: no archive: {error}") from None


def _read(path: Path, size: int) -> bytes:
    """Return a file, or so much of it that it is larger than `size`."""
    with path.open("rb") as file:
        return file.read(size + 1)


def _references(schema: Any) -> Iterator[tuple[str, str]]:
    """Yield the references in a schema, each with its key."""
    pending = [schema]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending += value.values()
            for key in REFERENCES:
                if isinstance(named := value.get(key), str):
                    yield key, named
        elif isinstance(value, list):
            pending += value
