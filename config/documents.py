"""Read multi-document YAML as the API server would, and remember on which line each field stands."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

STEP = re.compile(r"\[[^\]]*\]|[^.\[\]]+")


class DocumentError(ValueError):
    """A file that cannot be read or parsed; the text begins with the file and, where known, the line."""


class _Loader(yaml.SafeLoader):
    """YAML's JSON: no dates and no base-60 numbers, which the API's YAML does not know either."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, expression) for tag, expression in resolvers if not tag.endswith((":timestamp", ":int", ":float"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int",
    re.compile(r"^(?:[-+]?0b[01]+|[-+]?0x[0-9a-fA-F]+|[-+]?0o?[0-7]+|[-+]?(?:0|[1-9][0-9]*))$"),
    list("-+0123456789"),
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$"),
    list("-+.0123456789"),
)


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document: its value, where it came from, and the node that knows the lines."""

    source: str
    value: Any
    node: yaml.Node

    def line(self, path: str = "") -> int:
        """Return the line (from 1) of the field at `path`, or of its nearest parent.

        A list's item is told by its index or its name: `spec.any[0].kinds`, `spec.containers[name=app].image`.
        """
        node, line = self.node, self.node.start_mark.line
        for step in STEP.findall(path):
            if isinstance(node, yaml.SequenceNode) and step.startswith("["):
                item = _item(node, step[1:-1])
                if item is None:
                    break
                node, line = item, item.start_mark.line
            elif isinstance(node, yaml.MappingNode):
                found = [(key, value) for key, value in node.value if key.value == step]
                if not found:
                    break
                node, line = found[0][1], found[0][0].start_mark.line
            else:
                break
        return line + 1

    def where(self, path: str = "") -> str:
        """Return `file:line` of the field at `path`."""
        return f"{self.source}:{self.line(path)}"


def parse_documents(text: str, source: str) -> Iterator[Document]:
    """Yield the documents of `text` that are not empty, a `kind: List` as its items. DocumentError names the line."""
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            assert node is not None
            _refuse_duplicates(node, source)
            value = loader.construct_document(node)
            if value is None:
                continue
            yield from _items(Document(source, value, node))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise DocumentError(f"{source}{line}: not YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, DocumentError):
            raise
        raise DocumentError(f"{source}: not YAML: {error}") from None
    finally:
        loader.dispose()


def read_documents(path: Path) -> Iterator[Document]:
    """Yield the documents of the file at `path`. DocumentError where it cannot be read or parsed."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DocumentError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise DocumentError(f"{path}: {error.strerror or error}") from None
    yield from parse_documents(text, str(path))


def yaml_files(path: Path) -> list[Path]:
    """Return `path` itself, or where it is a directory its YAML and JSON files, sorted; hidden ones are left out.

    DocumentError where there is nothing.
    """
    if not path.is_dir():
        return [path]
    found = sorted(
        file for file in path.rglob("*") if file.suffix in {".yaml", ".yml", ".json"} and _visible(file, path)
    )
    if not found:
        raise DocumentError(f"{path}: no YAML files in this directory")
    return found


def _visible(file: Path, root: Path) -> bool:
    return file.is_file() and not any(part.startswith(".") for part in file.relative_to(root).parts)


def _item(node: yaml.SequenceNode, key: str) -> yaml.Node | None:
    if key.isdigit():
        return next(iter(node.value[int(key) :]), None)
    wanted = key.removeprefix("name=")
    for item in node.value:
        pairs = item.value if isinstance(item, yaml.MappingNode) else ()
        if any(field.value == "name" and value.value == wanted for field, value in pairs):
            return item  # type: ignore[no-any-return]
    return None


def _items(document: Document) -> Iterator[Document]:
    value, node = document.value, document.node
    if isinstance(value, dict) and value.get("kind") == "List" and isinstance(value.get("items"), list):
        nodes = next(child for key, child in node.value if key.value == "items")
        for item, child in zip(value["items"], nodes.value, strict=True):
            yield Document(document.source, item, child)
    else:
        yield document


def _refuse_duplicates(node: yaml.Node, source: str) -> None:
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                raise DocumentError(f"{source}:{key.start_mark.line + 1}: key {key.value!r} stands here a second time")
            seen.add(key.value)
            _refuse_duplicates(value, source)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_duplicates(item, source)
