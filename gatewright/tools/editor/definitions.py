"""The CustomResourceDefinitions in an editor's workspace: in its open texts, and in its files."""

from collections.abc import Iterable
from pathlib import Path

from config.documents import Document, DocumentError, read_documents, readable_yaml_files
from kube.resource import group_kind
from webhook.harness.objects import is_object

DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")
MAX_BYTES = 8 * 1024 * 1024  # of a file; the largest published ones have about 4 MB


class Definitions:
    """CustomResourceDefinitions by file; an open text replaces its file, saved or not."""

    def __init__(self, root: Path | None) -> None:
        """Take the workspace's directory, if there is one."""
        self._root = root
        self._open: dict[str, tuple[Document, ...]] = {}
        self._files: dict[str, tuple[int, tuple[Document, ...]]] = {}
        self._is_stale = True
        self.version = 0
        """Increases with each change of a definition."""

    def on_saved(self) -> None:
        """Look for changed files at the next `refresh`."""
        self._is_stale = True

    def refresh(self) -> None:
        """Read the files that changed, if a text was saved; unreadable ones define nothing."""
        if not self._is_stale or self._root is None:
            return
        self._is_stale = False
        before, self._files = self._files, {}
        for file in readable_yaml_files(self._root, lambda unread: None):
            name, changed = str(file), file.stat().st_mtime_ns if file.exists() else 0
            defined = before.get(name)
            if defined is None or defined[0] != changed:
                defined = changed, _defined_in(file)
            self._files[name] = defined
        if _find_documents(before) != _find_documents(self._files):
            self.version += 1

    def open(self, source: str, documents: Iterable[Document]) -> None:
        """Take the documents of an open text."""
        new = _among(documents)
        old = self._open.get(source)
        self._open[source] = new
        if old is None:
            old = self._files.get(source, (0, ()))[1]
        if [each.value for each in old] != [each.value for each in new]:
            self.version += 1

    def close(self, source: str) -> None:
        """Forget an open text: its file counts again."""
        if self._open.pop(source, None):
            self.version += 1

    def besides(self, source: str = "") -> list[Document]:
        """Return all definitions but those of one text."""
        files = {name: documents for name, (_, documents) in self._files.items()}
        everywhere = files | self._open
        return [
            document
            for name, documents in everywhere.items()
            if name != source
            for document in documents
        ]


def _defined_in(file: Path) -> tuple[Document, ...]:
    try:
        # Most files have none, and are not parsed.
        if file.stat().st_size > MAX_BYTES or DEFINITION[1].encode() not in file.read_bytes():
            return ()
        return _among(read_documents(file))
    except (OSError, DocumentError):
        return ()


def _among(documents: Iterable[Document]) -> tuple[Document, ...]:
    objects = filter(is_object, documents)
    return tuple(object for object in objects if group_kind(object.value) == DEFINITION)


def _find_documents(files: dict[str, tuple[int, tuple[Document, ...]]]) -> list[Document]:
    return [each for _, documents in files.values() for each in documents]
