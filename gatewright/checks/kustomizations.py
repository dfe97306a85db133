"""What a kustomization reads, and the plain files that the fields of its objects come from.

It reads the files and directories that its fields name.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from config.documents import Document, parse_documents, read_documents, readable_documents
from config.positions import FieldPlaces, OneLine
from config.printable import printable
from config.yaml_reader import ReadValue, read_values
from gatewright.checks.checked_tree import CheckedTree, resolve

KUSTOMIZATIONS = frozenset({"kustomization.yaml", "kustomization.yml", "Kustomization"})
MAX_DIRECTORIES = 1_000  # of one kustomization, with all that it includes
URL = re.compile(r"\s*https?:", re.IGNORECASE)  # what kustomize reads from the network in any field
REMOTE = re.compile(r"://|^[\w.-]+@[\w.-]+:")
INCLUDED = ("resources", "components", "bases")
OPTIONS = ("crds", "configurations", "patchesStrategicMerge")
# Fields whose items have the file at a key.
KEYED = {"patches": "path", "patchesJson6902": "path", "replacements": "path"}
GENERATED = ("configMapGenerator", "secretGenerator")
# Fields with configurations of plugins, which name files at these keys.
PLUGINS = ("generators", "transformers", "validators")
PLUGIN_KEYS = frozenset({"path", "paths", "files", "env", "envs", "repo", "valuesFile"})
HELM = ("helmCharts", "helmChartInflationGenerator")


@dataclass(slots=True)
class Kustomization:
    """What one kustomization file names, and why it cannot be built, if so."""

    file: Path
    is_component: bool = False
    directories: list[Path] = field(default_factory=list)
    resources: list[Path] = field(default_factory=list)  # files with whole objects
    inputs: list[Path] = field(default_factory=list)  # patches, data of generators, options
    faults: list[str] = field(default_factory=list)

    @property
    def paths(self) -> list[Path]:
        """Every file and directory that is read."""
        return [self.file, *self.directories, *self.resources, *self.inputs]


def kustomization_file(directory: Path) -> Path | None:
    """Return the kustomization file of a directory; None if it has none."""
    files = (directory / name for name in sorted(KUSTOMIZATIONS, reverse=True))
    return next((file for file in files if file.exists()), None)


def read_all(file: Path, tree: CheckedTree) -> dict[Path, Kustomization]:
    """Return a kustomization and all that it includes, by resolved directory.

    What is outside the tree, remote or missing is a fault, and is not followed.
    """
    kustomizations = dict[Path, Kustomization]()
    pending = [file]
    while pending:
        next_file = pending.pop()
        whole = resolve(next_file.parent)
        if whole not in kustomizations:
            kustomizations[whole] = one = read_kustomization(next_file, tree)
            if len(kustomizations) > MAX_DIRECTORIES:
                one.faults.append(f"includes more than {MAX_DIRECTORIES} directories")
                break
            pending += filter(None, map(kustomization_file, one.directories))
    return kustomizations


def read_kustomization(file: Path, tree: CheckedTree) -> Kustomization:
    """Return what a kustomization names."""
    one = Kustomization(file)
    documents, unreadable = readable_documents(read_documents(file))
    if unreadable:
        one.faults += unreadable
        return one
    value = documents[0].value if documents else {}
    if not isinstance(value, dict):
        one.faults.append("not a kustomization")
        return one
    one.is_component = value.get("kind") == "Component"
    if any(name in value for name in HELM):
        one.faults.append("helmCharts is not rendered; render the chart into a file, or name it")
    for name in _texts(value, INCLUDED):
        if path := _local(name, one, tree):
            (one.directories if path.is_dir() else one.resources).append(path)
    names = [*_input_names(value)]
    for text in _texts(value, PLUGINS):
        path = None if _is_inline(text, file) else _local(text, one, tree)
        if path is not None:
            (one.directories if path.is_dir() else one.inputs).append(path)
        names += _names_in_plugin(text, path, one)
    for name in names:
        if not _is_inline(name, file) and (path := _local(name, one, tree)):
            one.inputs.append(path)
    return one


def _names_in_plugin(text: str, path: Path | None, one: Kustomization) -> list[str]:
    """Return the files that configurations of plugins name, in a file or an inline text."""
    if path is not None and path.is_dir():
        return []
    configurations = read_documents(path) if path else parse_documents(text.encode(), str(one.file))
    documents, unreadable = readable_documents(configurations)
    one.faults += unreadable
    return [name for document in documents for name in _plugin_names(document.value)]


def _input_names(value: Mapping[str, Any]) -> Iterator[str]:
    """Yield the files, or inline texts, in all fields but those of `INCLUDED` and `PLUGINS`."""
    yield from _texts(value, OPTIONS)
    for name, key in KEYED.items():
        yield from _texts_at(value.get(name), key)
    yield from _texts_at([value.get("openapi")], "path")
    for name in GENERATED:
        for entry in _texts_at(value.get(name), "files"):
            yield entry.partition("=")[2] or entry
        for key in ("envs", "env"):
            yield from _texts_at(value.get(name), key)


def _plugin_names(value: Any) -> Iterator[str]:
    """Yield the files that the configuration of a plugin names."""
    for key, below in value.items() if isinstance(value, dict) else ():
        if key in PLUGIN_KEYS:
            yield from _texts_at([value], key)
        yield from _plugin_names(below)
    for item in value if isinstance(value, list) else ():
        yield from _plugin_names(item)


def _texts(value: Mapping[str, Any], fields: tuple[str, ...]) -> Iterator[str]:
    for name in fields:
        yield from _texts_at([value], name)


def _texts_at(items: Any, key: str) -> Iterator[str]:
    """Yield the text, or the texts of the list, at a key of each item."""
    for item in items if isinstance(items, list) else ():
        entries = item.get(key) if isinstance(item, dict) else None
        for entry in entries if isinstance(entries, list) else (entries,):
            if isinstance(entry, str):
                yield entry


def _is_inline(text: str, file: Path) -> bool:
    """Whether a text is a patch or configuration itself, not the name of its file."""
    is_text = "\n" in text or ": " in text or text.lstrip().startswith(("{", "["))
    return is_text and not URL.match(text) and not _exists(file.parent / text)


def _local(name: str, one: Kustomization, tree: CheckedTree) -> Path | None:
    """Return the path of a file or directory; None, with a fault, if it must not be read."""
    path = Path(os.path.normpath(one.file.parent / name))
    if URL.match(name) or REMOTE.search(name):
        fault = "is remote, and the network is not used; vendor it"
    elif not _exists(path):
        fault = "does not exist"
    elif not tree.permits_reference(path):
        fault = f"is outside of {printable(tree.references)}"
    elif path.is_dir() and kustomization_file(path) is None:
        fault = "has no kustomization"
    else:
        return path
    one.faults.append(f"{printable(name)} {fault}")
    return None


def _exists(path: Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110 (Path.exists raises for names that are too long)


ANNOTATION = "config.kubernetes.io/origin"
# A kustomization of one directory, whose objects are annotated with their origin.
OVERLAY = "{{resources: [{}], buildMetadata: [originAnnotations]}}\n"


class OriginFiles:
    """The plain files of kustomizations; each is read once."""

    def __init__(self) -> None:
        """Start without files."""
        self._files: dict[Path, list[tuple[str, str, FieldPlaces]]] = {}
        self._built: dict[Path, Counter[Path]] = {}  # objects by file, of each kustomization

    def place(self, document: Document, kustomization: Path, base: Path) -> Document:
        """Return an object of a kustomization file with the lines of its plain file.

        If there is no such file, or if several of its objects match, the lines are the first line
        of the kustomization. The origin annotation is removed.
        """
        self._built.setdefault(kustomization, Counter())
        source, lines = kustomization, None
        if origin := _origin(document.value):
            file = Path(os.path.normpath(base / origin))
            self._built[kustomization][resolve(file)] += 1
            lines = self._lines(file, document.value)
            if lines is not None:
                directory = kustomization.parent
                source = directory / os.path.relpath(file, directory.resolve())
        return Document(os.path.normpath(source), document.value, lines or OneLine())

    def omits(self, file: Path) -> bool:
        """Whether no kustomization so far has all objects of a plain file: patches remove some."""
        most = max((built[resolve(file)] for built in self._built.values()), default=0)
        return most < len([*_objects(file)])

    def _lines(self, file: Path, object: dict[str, Any]) -> FieldPlaces | None:
        if file not in self._files:
            self._files[file] = list(_objects(file))
        kind, name = object.get("kind"), object["metadata"].get("name") or ""
        # A kustomization may put a prefix and a suffix around the name.
        similar = [(each, at) for of, each, at in self._files[file] if of == kind and each in name]
        exact = [each for each in similar if each[0] == name]
        candidates = exact or similar
        return candidates[0][1] if len(candidates) == 1 else None


def _objects(file: Path) -> Iterator[tuple[str, str, FieldPlaces]]:
    """Yield kind, name and field positions of each object of a file."""
    for document in readable_documents(read_documents(file))[0]:
        match document.value:
            case {"kind": str(kind), "metadata": {"name": str(name)}} if document.lines:
                yield kind, name, document.lines


def _origin(object: Any) -> str | None:
    """Remove the origin annotation of an object, and return the path in it."""
    match object:
        case {"metadata": {"annotations": {"config.kubernetes.io/origin": str(noted)} as found}}:
            del found[ANNOTATION]
            if not found:
                del object["metadata"]["annotations"]
            origin = next(read_values(noted), None)
            of = origin.value if isinstance(origin, ReadValue) else None
            return of.get("path") if isinstance(of, dict) and "repo" not in of else None
    return None
