"""Read multi-document YAML as the API server does, and keep the line and column of each field."""

import codecs
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import yaml

from config.directories import walk_directory
from config.positions import FieldPlaces, Position, TextLines
from config.printable import printable
from config.yaml_reader import ReadValue, read_values

MANIFEST = re.compile(r"[^.].*\.(ya?ml|json)", re.IGNORECASE)  # a name that is not hidden
MAX_FAULTS = 100  # of a file: what is unusable takes long to parse, and to read about
MAX_BYTES = 256 << 20  # of a file: a device such as /dev/zero has no end

TOO_MANY = f"not read from here: {MAX_FAULTS} documents before are unusable"


class DocumentError(ValueError):
    """A file, or documents in it, cannot be read or parsed.

    The message has a line for each, which begins with the file and, if known, the line in it.
    """

    @property
    def lines(self) -> list[str]:
        """The lines of the message."""
        return str(self).split("\n")


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document: its file, its value, and the lines of its fields.

    An object read from a cluster has no lines.
    """

    source: str
    value: Any
    lines: FieldPlaces | None = None

    def find(self, path: str = "") -> tuple[str, Position]:
        """Return file and position of the field at `path`, or of its nearest parent.

        Of a chart, the file is its template or values file. Name a list item by its index or by one
        of its fields: `spec.any[0].kinds`, `containers[name=app].image`.
        """
        if self.lines is None:
            return self.source, (1, 1)
        file, position = self.lines.find(path)
        return file or self.source, position

    def place(self, path: str = "") -> Position:
        """Return line and column (both from 1) of the field at `path`, or of its nearest parent."""
        return self.find(path)[1]

    def line(self, path: str = "") -> int:
        """Return the line (from 1) of the field at `path`, or of its nearest parent."""
        return self.place(path)[0]

    def where(self, path: str = "") -> str:
        """Return `file:line` of the field at `path`; the source alone where it has no lines."""
        file, (line, _) = self.find(path)
        return f"{printable(file)}:{line}" if self.has_lines else printable(file)

    @classmethod
    def of_object(cls, value: Any, source: str = "") -> "Document":
        """Return an object read from a cluster as a document without lines.

        `source` is the name that errors show.
        """
        return cls(source, value)

    @property
    def node(self) -> yaml.Node:
        """The YAML node of a document from a file, for edits of its text."""
        assert isinstance(self.lines, TextLines)
        return self.lines.node

    @property
    def is_written(self) -> bool:
        """Whether the file contains the object itself, not a template or generator of it."""
        return isinstance(self.lines, TextLines)

    @property
    def has_lines(self) -> bool:
        """Whether it is from a file: an object read from a cluster has no lines."""
        return self.lines is not None


def parse_documents(data: bytes, source: str) -> Iterator[Document]:
    """Yield the non-empty documents of `data`, and of a list its items.

    Raises DocumentError after the last one, with a line for each document that is unusable.
    """
    faults = list[str]()
    try:
        text = decode_text(data)
    except UnicodeDecodeError as error:
        raise DocumentError(
            f"{printable(source)}: not UTF-8 text: {error.reason} at byte {error.start}"
        ) from None
    for document in read_values(text):
        if isinstance(document, ReadValue):
            value, part, (line, column) = document
            yield from _items(
                Document(source, value), TextLines(text, part, (line + 1, column + 1))
            )
            continue
        is_last = len(faults) == MAX_FAULTS
        reason = TOO_MANY if is_last else document
        faults.append(f"{printable(source)}:{document.line + 1}: {reason}")
        if is_last:
            break
    if faults:
        raise DocumentError("\n".join(faults))


def readable_documents(documents: Iterable[Document]) -> tuple[list[Document], list[str]]:
    """Return the documents that can be read, and a line for each that cannot."""
    readable = list[Document]()
    try:
        for document in documents:
            readable.append(document)  # kept when the next one raises
    except DocumentError as error:
        return readable, error.lines
    return readable, []


def decode_text(data: bytes) -> str:
    """Return the text of a file in UTF-8, or in UTF-16 with a byte order mark, without the mark.

    Raises UnicodeDecodeError.
    """
    return data.decode("utf-16" if is_utf16(data) else "utf-8-sig")


def is_utf16(data: bytes) -> bool:
    """Return whether a file begins with the byte order mark of UTF-16."""
    return data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def read_documents(path: Path) -> Iterator[Document]:
    """Yield the documents of the file at `path`.

    Raises DocumentError if it cannot be read, or after the last one, if some cannot be parsed.
    """
    try:
        with path.open("rb") as file:
            data = _read_bounded(file, path)
    except OSError as error:
        raise DocumentError(f"{printable(path)}: {error.strerror or error}") from None
    yield from parse_documents(data, os.fsencode(path).decode(errors="backslashreplace"))


def documents_at(paths: Iterable[Path]) -> list[Document]:
    """Return the documents of the files at `paths`, or in those directories.

    Raises DocumentError, with a line for each, if files or documents cannot be read, or a directory
    has none.
    """
    documents, faults = readable_documents_at(paths)
    if faults:
        raise DocumentError("\n".join(faults))
    return documents


def readable_documents_at(paths: Iterable[Path]) -> tuple[list[Document], list[str]]:
    """Return the documents of the files at `paths`, or in those directories.

    With a line for each file or document that cannot be read, and each directory without files.
    """
    readable, faults = list[Document](), list[str]()
    for path in paths:
        try:
            files = yaml_files(path)
        except DocumentError as error:
            faults += error.lines
            continue
        for file in files:
            documents, unreadable = readable_documents(read_documents(file))
            readable += documents
            faults += unreadable
    return readable, faults


def read_stdin() -> Iterator[Document]:
    """Yield the documents on standard input.

    Raises DocumentError if it is closed or cannot be parsed.
    """
    if sys.stdin is None:
        raise DocumentError("<stdin>: standard input is closed")
    yield from parse_documents(_read_bounded(sys.stdin.buffer, "<stdin>"), "<stdin>")


def _read_bounded(file: BinaryIO, source: object) -> bytes:
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise DocumentError(f"{printable(source)}: larger than {MAX_BYTES >> 20} MiB; split it")
    return data


def yaml_files(path: Path) -> list[Path]:
    """Return `path`, or the YAML and JSON files of a directory, sorted, without hidden ones.

    Raises DocumentError if there is none.
    """
    if not path.is_dir():
        return [path]
    files = yaml_files_in(path)
    if not files:
        raise DocumentError(f"{printable(path)}: no YAML files in this directory")
    return files


def yaml_files_in(directory: Path) -> list[Path]:
    """Return the YAML and JSON files of a directory, sorted, without hidden ones.

    There may be none. Raises DocumentError if a directory cannot be read, is nested too deeply, or
    is a link out of `directory`.
    """
    unread = list[str]()
    files = readable_yaml_files(directory, unread.append)
    if unread:
        raise DocumentError("\n".join(unread))
    return files


def readable_yaml_files(directory: Path, report_unread: Callable[[str], None]) -> list[Path]:
    """Return the YAML and JSON files of a directory, sorted, without hidden ones.

    `report_unread` gets a line for each directory that is not read.
    """
    files = list[Path]()
    whole = directory.resolve()
    for path, folders, names, linked in walk_directory(directory, report_unread):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += [path / name for name in names if MANIFEST.fullmatch(name)]
        for link in (path / name for name in linked if not name.startswith(".")):
            if not Path(os.path.realpath(link)).is_relative_to(whole):
                report_unread(f"{printable(link)}: not read: a link to a directory; name that one")
    # A link to a file that is gone is an error where it is read.
    return sorted(file for file in files if file.is_file() or not file.exists())


def _items(document: Document, lines: TextLines) -> Iterator[Document]:
    """Yield a document, or the items of a list and of the lists in it, as kubectl does.

    An object of any kind with a list `items` is a list. An item of a typed list such as
    `DeploymentList` may omit apiVersion and kind.
    """
    value = document.value
    kind = str(value.get("kind") or "") if isinstance(value, dict) else ""
    if not (kind and isinstance(value.get("items"), list)):
        yield replace(document, lines=lines)
        return
    of_list = {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix("List")}
    for index, item in enumerate(value["items"]):
        whole = item | of_list if of_list["kind"] and _is_bare(item) else item
        below = replace(lines, items=(*lines.items, index))
        yield from _items(Document(document.source, whole), below)


def _is_bare(item: Any) -> bool:
    if not isinstance(item, dict):
        return False
    return not any(
        isinstance(name := item.get(field), str) and name for field in ("apiVersion", "kind")
    )
