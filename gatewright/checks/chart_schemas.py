"""What the values schemas of a chart refer to: helm would read files of the machine, and URLs."""

import gzip
import posixpath
import re
import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from config.documents import DocumentError, parse_documents, readable_documents
from config.printable import printable
from gatewright.checks.charts import NO_ARCHIVE, PARTS, SCHEMA, paths_of

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
