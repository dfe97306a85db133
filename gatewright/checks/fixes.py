"""`check --fix`: correct violations in the text of files."""

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from config.documents import Document, is_utf16, parse_documents, readable_documents
from config.edits import EditableText, EditError, TextEdit, apply_edits, replace_at
from config.printable import printable
from gatewright.checks.origin_files import value_below, written_path
from gatewright.outputs import PolicyInfo, SubjectResult, write_file
from kube.resource import FieldPath, PathElement
from webhook.engine.violation import UNSET, steps_of
from webhook.findings import Finding
from webhook.messages import count_noun
from webhook.policy_sets.catalogue import catalogue

PatchOperation = Mapping[str, Any]  # of a JSON Patch (RFC 6902)
ReportedDocument = tuple[Document, SubjectResult]
DocumentFix = tuple[Document, PatchOperation]
FieldChange = tuple[FieldPath, Any]  # a new value; None removes the field
Queues = dict[int, list[FieldChange]]  # of each document
COMMAND = re.compile(r"^ (\s*)::")  # GitHub also runs indented commands


@dataclass(frozen=True, slots=True)
class FixedFile:
    """A file, its text before and after, and how many fields were fixed or left out.

    `shared` fields are left out since their text is that of other fields, too.
    """

    path: Path
    before: str
    after: str
    count: int
    left_out: int
    shared: int
    encoding: str = "utf-8"

    def diff(self) -> Iterator[str]:
        """Yield the lines of a unified diff, printable and without workflow commands of a CI."""
        before, after = (text.splitlines() for text in (self.before, self.after))
        name = str(self.path)
        for line in difflib.unified_diff(before, after, name, name, lineterm=""):
            yield COMMAND.sub(r" \1\\x3a:", printable(line))

    def write(self) -> None:
        """Write the file."""
        write_file(self.path, self.after, self.encoding)


def patch_of(
    finding: Finding, policies: Mapping[str, PolicyInfo]
) -> tuple[tuple[PatchOperation, ...], bool]:
    """Return the JSON Patch (RFC 6902) that fixes a violation, and whether it is safe.

    The patch is empty if no value fixes the violation, or if the violation is in another object. A
    fix is unsafe unless its policy declares it safe.
    """
    violation = finding.violation
    if (
        violation is None
        or violation.fix_value is UNSET
        or violation.of
        or violation.holder is None
    ):
        return (), False
    policy = catalogue()[violation.check] if violation.check else policies.get(finding.policy)
    is_safe = policy is not None and policy.fix is not None and policy.fix.is_safe
    path = (*violation.holder.steps(), *steps_of(violation.field))
    pointer = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
    if violation.fix_value is None:
        return ({"op": "remove", "path": pointer},), is_safe
    return ({"op": "add", "path": pointer, "value": violation.fix_value},), is_safe


def _fixes_of(
    result: SubjectResult, *, defaults: bool, adds_items: bool
) -> Iterator[tuple[PatchOperation, bool]]:
    """Yield each operation that fixes a violation, and whether it is safe.

    With `defaults`, also yield the operations of mutating policies; those that add an item to a
    list only with `adds_items`.
    """
    for violation in result.violations:
        yield from ((operation, violation.patch_is_safe) for operation in violation.patch)
    for operation in result.operations if defaults else ():
        if "value" in operation:
            # An `add` with an index inserts an item; the fix of a violation replaces it.
            inserts = operation["op"] == "add" and operation["path"].rpartition("/")[2].isdigit()
            if adds_items or not inserts:
                yield ({**operation, "op": "insert"} if inserts else operation), True


def fixed_files(
    reported: Iterable[ReportedDocument], *, defaults: bool, unsafe: bool, adds_items: bool = True
) -> tuple[list[FixedFile], list[str]]:
    """Return the corrected files, and lines about the fixes that are left out.

    Without `adds_items`, no mutating policy adds an item to a list.
    """
    fixes: dict[str, list[DocumentFix]] = {}
    elsewhere, unwritable, hidden = Counter[str](), 0, 0
    for document, result in reported:
        source, found = document.source, list[tuple[PatchOperation, bool]]()
        for fix in _fixes_of(result, defaults=defaults, adds_items=adds_items):
            found += [fix] * (fix not in found)
        chosen = [operation for operation, is_safe in found if is_safe or unsafe]
        hidden += len(found) - len(chosen)
        if not document.is_written:
            elsewhere[source] += len(chosen)
        elif Path(source).is_file():
            fixes.setdefault(source, []).extend((document, each) for each in chosen)
        else:
            unwritable += len(chosen)
    files = [_fix_file(Path(source), changes) for source, changes in fixes.items()]
    elsewhere.update({str(each.path): each.left_out for each in files})
    notes = [
        f"{source}: {count_noun(count, 'fix', 'es')} left out: a template, generator or patch sets "
        "the values"
        for source, count in elsewhere.items()
        # An object of a cluster has no source.
        if source and count
    ]
    notes += [
        f"{file.path}: {count_noun(file.shared, 'fix', 'es')} left out: anchors, aliases or merges "
        "share the values; write them out"
        for file in files
        if file.shared
    ]
    if unwritable:
        notes.append(f"{count_noun(unwritable, 'fix', 'es')} left out: standard input is no file")
    if hidden:
        unsafe_fixes = count_noun(hidden, "fix", "es")
        notes.append(f"{unsafe_fixes} left out: may stop an application; --unsafe-fixes adds them")
    return [each for each in files if each.count], notes


def _fix_file(path: Path, changes: Iterable[DocumentFix]) -> FixedFile:
    data = path.read_bytes()
    encoding = "utf-16" if is_utf16(data) else "utf-8"
    before = data.decode(encoding)
    text = FixedText(before, str(path))
    left_out = text.change(changes)
    return FixedFile(path, before, text.text, text.count, left_out, text.shared, encoding)


def _steps(pointer: str, value: Any) -> FieldPath:
    """Return the path that a JSON pointer names in a value; numbers are indexes only in lists."""
    path = list[PathElement]()
    for part in pointer.split("/")[1:]:
        is_index = isinstance(value, list) and part.isdigit()
        step = int(part) if is_index else part.replace("~1", "/").replace("~0", "~")
        path.append(step)
        value = value_below(value, step)
    return tuple(path)


def _appended_path(path: FieldPath, judged: Any, written: Any) -> FieldPath | None:
    """Return the path of an item that is added at the end of a list; None if it is elsewhere."""
    for step in path[:-1]:
        judged, written = value_below(judged, step), value_below(written, step)
    is_last = isinstance(judged, list) and judged == written and path[-1] == len(judged)
    return path if is_last else None


class FixedText:
    """A text whose documents are changed one field at a time.

    Each change is verified before it is kept; `count` is the number of kept changes, `shared` that
    of others.
    """

    def __init__(self, text: str, source: str) -> None:
        """Parse the text of a file; unreadable documents stay as they are."""
        self.text = text
        self.count = self.shared = 0
        self._source = source
        self._documents = self._parse(text)

    def change(self, fixes: Iterable[DocumentFix]) -> int:
        """Apply as many changes as possible, one after the other within a document.

        Return how many were left out because the text has other values than the rendered object.
        """
        queues: Queues = {}
        places = {each.place(): index for index, each in enumerate(self._documents)}
        left_out = 0
        for document, operation in fixes:
            index = places[document.place()]
            path = _steps(operation["path"], document.value)
            own = self._documents[index].value
            if operation["op"] == "insert" and isinstance(path[-1], int):
                written = _appended_path(path, document.value, own)
            else:
                written = written_path(path, document.value, own)
            queue = queues.setdefault(index, [])
            if written is None:
                left_out += 1
            elif (change := (written, operation.get("value"))) not in queue:
                queue.append(change)
        while any(queues.values()):
            batch = {index: queue.pop(0) for index, queue in queues.items() if queue}
            self._carry_out(batch, queues)
        return left_out

    def _carry_out(self, batch: dict[int, FieldChange], queues: Queues) -> None:
        """Apply as many of the changes as possible: if the whole batch fails, try each half."""
        if self._carried_out(batch, queues):
            return
        if len(batch) > 1:
            changes = list(batch.items())
            for part in (changes[: len(changes) // 2], changes[len(changes) // 2 :]):
                self._carry_out(dict(part), queues)
        elif not self._carried_out(batch, queues, apart=True):
            self.shared += 1

    def _carried_out(
        self, batch: dict[int, FieldChange], queues: Queues, *, apart: bool = False
    ) -> bool:
        """Apply the changes, and those of the queues that the same text makes.

        Return False, with nothing changed, if the result is not exactly the intended one.
        """
        text = EditableText(self.text, is_json=self._source.endswith(".json"))
        edits, expected = list[TextEdit](), [each.value for each in self._documents]
        try:
            for index, change in batch.items():
                node, value = self._documents[index].node, expected[index]
                edits.append(
                    text.edit_apart(node, value, *change) if apart else text.edit(node, *change)
                )
                expected[index] = replace_at(value, *change)
            new = apply_edits(self.text, edits)
            documents = self._parse(new)
            made = _applied_changes(batch, queues, expected, [each.value for each in documents])
        except (EditError, ValueError):
            return False
        if [each.value for each in documents] != expected:
            return False
        for index, changes in made.items():
            queues[index] = [each for each in queues[index] if each not in changes]
        self.text, self._documents = new, documents
        self.count += len(batch) + sum(map(len, made.values()))
        return True

    def _parse(self, text: str) -> list[Document]:
        return readable_documents(parse_documents(text.encode(), self._source))[0]


def _applied_changes(
    batch: Iterable[int], queues: Queues, expected: list[Any], found: list[Any]
) -> dict[int, list[FieldChange]]:
    """Return the queued changes that edits made, too, and add them to the expected values."""
    made: dict[int, list[FieldChange]] = {}
    if len(found) == len(expected):
        for index in batch:
            if found[index] != expected[index]:
                made[index] = [each for each in queues[index] if _holds(found[index], each)]
                for change in made[index]:
                    expected[index] = replace_at(expected[index], *change)
    return made


def _holds(value: Any, change: FieldChange) -> bool:
    try:
        return bool(replace_at(value, *change) == value)
    except EditError:
        return False
