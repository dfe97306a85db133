"""Read multi-document YAML as the API server does, and keep the line and column of each field."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import yaml

from config.nodes import compose, construct
from config.printable import printable

STEP = re.compile(r"\[[^\]]*\]|[^.\[\]]+")
LARGEST = (
    1_000_000  # nodes of a document, aliases expanded; no object of the API is nearly as large
)


class DocumentError(ValueError):
    """A file cannot be read or parsed; the message begins with the file and, if known, the line."""


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document: its value, its file, and the YAML node with the lines.

    `is_exact` is False for rendered text, whose lines are not those of the source file.
    """

    source: str
    value: Any
    node: yaml.Node
    is_exact: bool = True

    @classmethod
    def of_object(cls, value: Any, source: str = "") -> "Document":
        """Return an object of a cluster as a document without lines.

        `source` is what faults name.
        """
        return cls(source, value, yaml.ScalarNode("", ""), is_exact=False)

    def place(self, path: str = "") -> tuple[int, int]:
        """Return line and column (both from 1) of the field at `path`, or of its nearest parent.

        Name a list item by its index or by one of its fields: `spec.any[0].kinds`,
        `containers[name=app].image`.
        """
        if not self.is_exact:
            return 1, 1
        mark, _ = self._found(path)
        return mark.line + 1, mark.column + 1

    def line(self, path: str = "") -> int:
        """Return the line (from 1) of the field at `path`, or of its nearest parent."""
        return self.place(path)[0]

    def where(self, path: str = "") -> str:
        """Return `file:line` of the field at `path`; the source alone where it has no lines."""
        source = printable(self.source)
        return f"{source}:{self.line(path)}" if self.has_lines else source

    @property
    def has_lines(self) -> bool:
        """Whether it is from a file: an object of a cluster has no lines."""
        return self.node.start_mark is not None

    def _found(self, path: str) -> tuple[yaml.Mark, yaml.Node]:
        node, mark = self.node, self.node.start_mark
        for step in STEP.findall(path):
            if isinstance(node, yaml.SequenceNode) and step.startswith("["):
                item = _item(node, step[1:-1])
                if item is None:
                    break
                node, mark = item, item.start_mark
            elif isinstance(node, yaml.MappingNode):
                # Such as `[app.kubernetes.io/name]` of `labels`.
                name = step[1:-1] if step.startswith("[") else step
                found = next(((key, value) for key, value in node.value if key.value == name), None)
                if found is None:
                    break
                node, mark = found[1], found[0].start_mark
            else:
                break
        return mark, node


def parse_documents(data: bytes, source: str) -> Iterator[Document]:
    """Yield the non-empty documents of `data`, and of a list its items.

    Raises DocumentError with the line.
    """
    try:
        for node in compose(data.decode()):
            line = node.start_mark.line + 1
            if _measured(node, source, {}) > LARGEST:
                raise DocumentError(f"{printable(source)}:{line}: larger than {LARGEST} values")
            value = construct(node)
            if value is not None:
                _refuse_foreign(value, f"{printable(source)}:{line}")
                yield from _items(Document(source, value, node))
    except UnicodeDecodeError as error:
        raise DocumentError(
            f"{printable(source)}: not UTF-8 text: {error.reason} at byte {error.start}"
        ) from None
    except yaml.reader.ReaderError as error:
        raise DocumentError(
            f"{printable(source)}: not YAML: a control character at position {error.position}"
        ) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f":{mark.line + 1}" if mark else ""
        hint = "; a template must be rendered first" if b"{{" in data else ""
        raise DocumentError(
            f"{printable(source)}{at}: not YAML: {error.problem or error.context}{hint}"
        ) from None
    except RecursionError:
        raise DocumentError(f"{printable(source)}: not YAML: nested too deeply") from None


def read_documents(path: Path) -> Iterator[Document]:
    """Yield the documents of the file at `path`.

    Raises DocumentError if it cannot be read or parsed.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DocumentError(f"{printable(path)}: {error.strerror or error}") from None
    yield from parse_documents(data, os.fsencode(path).decode(errors="backslashreplace"))


def documents_of(manifests: Sequence[str]) -> list[Document]:
    """Return the documents of command-line arguments: files, directories, and - for standard input.

    Raises DocumentError if there is none, since an empty report would look like success.
    """
    found = [document for manifest in manifests for document in _documents_of(manifest)]
    if not found:
        raise DocumentError(
            f"{', '.join('<stdin>' if each == '-' else each for each in manifests)}: no objects"
        )
    return found


def _documents_of(manifest: str) -> Iterator[Document]:
    if manifest == "-":
        yield from read_stdin()
    else:
        for file in yaml_files(Path(manifest)):
            yield from read_documents(file)


def read_stdin() -> Iterator[Document]:
    """Yield the documents on standard input.

    Raises DocumentError if it is closed or cannot be parsed.
    """
    if sys.stdin is None:
        raise DocumentError("<stdin>: standard input is closed")
    yield from parse_documents(sys.stdin.buffer.read(), "<stdin>")


def yaml_files(path: Path) -> list[Path]:
    """Return `path`, or the YAML and JSON files of a directory, sorted, without hidden ones.

    Raises DocumentError if there is none.
    """
    if not path.is_dir():
        return [path]
    found = yaml_files_in(path)
    if not found:
        raise DocumentError(f"{printable(path)}: no YAML files in this directory")
    return found


def yaml_files_in(directory: Path) -> list[Path]:
    """Return the YAML and JSON files of a directory, sorted, without hidden ones.

    There may be none.
    """
    return sorted(
        file
        for file in directory.rglob("*")
        if file.suffix.lower() in {".yaml", ".yml", ".json"} and _visible(file, directory)
    )


def _visible(file: Path, root: Path) -> bool:
    return file.is_file() and not any(part.startswith(".") for part in file.relative_to(root).parts)


def _item(node: yaml.SequenceNode, key: str) -> yaml.Node | None:
    if key.isdigit():
        return next(iter(node.value[int(key) :]), None)
    name, _, wanted = key.rpartition("=")
    for item in node.value:
        pairs = item.value if isinstance(item, yaml.MappingNode) else ()
        if any(field.value == (name or "name") and value.value == wanted for field, value in pairs):
            return item  # type: ignore[no-any-return]
    return None


def _items(document: Document) -> Iterator[Document]:
    """Yield a document, or the items of a list and of lists in it, as kubectl takes them.

    An item of a `DeploymentList` need not say what it is.
    """
    value, node = document.value, document.node
    kind = value.get("kind") if isinstance(value, dict) else None
    if not (
        isinstance(kind, str) and kind.endswith("List") and isinstance(value.get("items"), list)
    ):
        yield document
        return
    listed = (
        {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix("List")}
        if kind != "List"
        else {}
    )
    # There are none where a merge key (<<) has them.
    nodes = [child for key, child in node.value if key.value == "items"]
    for index, item in enumerate(value["items"]):
        whole = listed | item if isinstance(item, dict) else item
        yield from _items(
            Document(document.source, whole, nodes[0].value[index] if nodes else node)
        )


def _refuse_foreign(value: Any, where: str) -> None:
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise DocumentError(f"{where}: not JSON: {error}") from None


def _measured(node: yaml.Node, source: str, sizes: dict[int, int]) -> int:
    """Return the number of nodes with aliases expanded.

    Raises DocumentError if a key is repeated.
    """
    if id(node) in sizes:
        return sizes[id(node)]
    below: list[yaml.Node] = []
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                    line = key.start_mark.line + 1
                    raise DocumentError(f"{printable(source)}:{line}: duplicate key {key.value!r}")
                seen.add(key.value)
            below.append(value)
    elif isinstance(node, yaml.SequenceNode):
        below = node.value
    sizes[id(node)] = 1 + sum(_measured(each, source, sizes) for each in below)
    return sizes[id(node)]
