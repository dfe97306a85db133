"""`check --fix`: write corrected values into the files with violations."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from config.documents import Document, DocumentError, parse_documents
from config.edits import EditableText, EditError, TextEdit, changed
from kube.resource import FieldPath
from webhook.engine.record import steps_of
from webhook.engine.violation import UNSET
from webhook.findings import Finding
from webhook.harness.manifests import JudgedManifest


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A new `value` for the field at `path`; None removes the field."""

    path: FieldPath
    value: Any

    def __hash__(self) -> int:
        return hash(self.path)


def change_of(finding: Finding) -> FieldChange | None:
    """Return the change that fixes a violation.

    None if no value does, or if it is about another object.
    """
    violation = finding.violation
    if violation is None or violation.mended is UNSET or violation.of or violation.holder is None:
        return None
    return FieldChange((*violation.holder.steps(), *steps_of(violation.field)), violation.mended)


def operation(change: FieldChange) -> dict[str, Any]:
    """Return a change as an operation of a JSON Patch (RFC 6902)."""
    pointer = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in change.path)
    if change.value is None:
        return {"op": "remove", "path": pointer}
    return {"op": "add", "path": pointer, "value": change.value}


def changes_of(judged: JudgedManifest, *, defaults: bool) -> list[FieldChange]:
    """Return the changes that fix a manifest's violations.

    With `defaults`, also what policies would set.
    """
    found = [change for each in judged.findings if (change := change_of(each)) is not None]
    if defaults:
        found += [
            FieldChange(_steps(each["path"]), each["value"])
            for each in judged.operations
            if "value" in each
        ]
    return list(dict.fromkeys(found))


def write_fixes(judged: Iterable[JudgedManifest], *, defaults: bool) -> list[str]:
    """Apply the changes to the manifests' files; return a line for each changed file."""
    wanted: dict[str, list[tuple[Document, FieldChange]]] = {}
    for each in judged:
        if each.document.is_exact and Path(each.document.source).is_file():
            found = changes_of(each, defaults=defaults)
            wanted.setdefault(each.document.source, []).extend(
                (each.document, change) for change in found
            )
    lines = []
    for source, changes in wanted.items():
        file = File(Path(source))
        file.change(changes)
        if file.count:
            file.write()
            lines.append(f"{source}: fixed {file.count} field{'' if file.count == 1 else 's'}")
    return lines


def _steps(pointer: str) -> FieldPath:
    parts = (part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
    return tuple(int(part) if part.isdigit() else part for part in parts)


class File:
    """A file whose documents are changed one field at a time.

    Each change is verified before it is kept.
    """

    def __init__(self, path: Path) -> None:
        """Read the file."""
        self.path = path
        self.count = 0
        self._text = path.read_bytes().decode()
        self._documents = self._parsed(self._text)

    def change(self, wanted: Iterable[tuple[Document, FieldChange]]) -> None:
        """Apply as many changes as possible, one after the other within a document."""
        queues: dict[int, list[FieldChange]] = {}
        places = {each.place(): index for index, each in enumerate(self._documents)}
        for document, change in wanted:
            queue = queues.setdefault(places[document.place()], [])
            queue.append(change)
        while any(queues.values()):
            batch = {index: queue.pop(0) for index, queue in queues.items() if queue}
            self._carry_out(batch)

    def write(self) -> None:
        """Write the changed file."""
        self.path.write_bytes(self._text.encode())

    def _carry_out(self, batch: dict[int, FieldChange]) -> None:
        """Apply as many of the changes as possible: if the whole batch fails, try each half."""
        if not self._carried_out(batch) and len(batch) > 1:
            changes = list(batch.items())
            for part in (changes[: len(changes) // 2], changes[len(changes) // 2 :]):
                self._carry_out(dict(part))

    def _carried_out(self, batch: dict[int, FieldChange]) -> bool:
        """Apply the changes.

        Return False, with nothing changed, if the result is not exactly the intended one.
        """
        text, edits, expected = (
            EditableText(self._text, is_json=self.path.suffix == ".json"),
            list[TextEdit](),
            self._values(),
        )
        try:
            for index, change in batch.items():
                edits.append(text.edit(self._documents[index].node, change.path, change.value))
                expected[index] = changed(expected[index], change.path, change.value)
            new = self._text
            for edit in sorted(edits, key=lambda each: each.start, reverse=True):
                new = new[: edit.start] + edit.text + new[edit.end :]
            documents = self._parsed(new)
        except (EditError, DocumentError, ValueError):
            return False
        if [each.value for each in documents] != expected:
            return False
        self._text, self._documents, self.count = new, documents, self.count + len(batch)
        return True

    def _parsed(self, text: str) -> list[Document]:
        return list(parse_documents(text.encode(), str(self.path)))

    def _values(self) -> list[Any]:
        return [each.value for each in self._documents]
