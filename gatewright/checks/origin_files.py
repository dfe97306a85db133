"""Find the plain file and field that a field of a kustomization's object comes from."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from config.documents import Document, read_documents, readable_documents
from config.positions import FieldPlaces, OneLine
from config.yaml_reader import ReadValue, read_values
from gatewright.checks.checked_tree import resolve
from kube.resource import FieldPath, PathElement

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
        found = [(each, at) for of, each, at in self._files[file] if of == kind and each in name]
        exact = [each for each in found if each[0] == name]
        candidates = exact or found
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


def written_path(path: FieldPath, judged: Any, written: Any) -> FieldPath | None:
    """Return the path, in the written object, of a field of the object rendered from it.

    Return None if the written object has another value there. List items are matched by name.
    """
    if not path or judged == written:
        return path if judged == written else None
    step = at = path[0]
    item = value_below(judged, step)
    if isinstance(written, list):
        same = [index for index, each in enumerate(written) if _name(each) == _name(item)]
        if not same:
            return None
        at = step if step in same else same[0]
    below = written_path(path[1:], item, value_below(written, at))
    return None if below is None else (at, *below)


def value_below(value: Any, step: PathElement) -> Any:
    """Return the value at a key or index; None if there is none."""
    try:
        return value[step]
    except (LookupError, TypeError):
        return None


def _name(item: Any) -> Any:
    return item.get("name", item) if isinstance(item, dict) else item
