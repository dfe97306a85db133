"""What a kustomization reads: the files and directories that its fields name."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from config.documents import parse_documents, read_documents, readable_documents
from config.printable import printable
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
    found = dict[Path, Kustomization]()
    pending = [file]
    while pending:
        each = pending.pop()
        whole = resolve(each.parent)
        if whole not in found:
            found[whole] = one = read_kustomization(each, tree)
            if len(found) > MAX_DIRECTORIES:
                one.faults.append(f"includes more than {MAX_DIRECTORIES} directories")
                break
            pending += filter(None, map(kustomization_file, one.directories))
    return found


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
    found = read_documents(path) if path else parse_documents(text.encode(), str(one.file))
    documents, unreadable = readable_documents(found)
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
        found = item.get(key) if isinstance(item, dict) else None
        for entry in found if isinstance(found, list) else (found,):
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
