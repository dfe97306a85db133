"""`check --fix`: correct violations in the text of files."""

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from config.documents import Document, is_utf16
from config.printable import printable
from gatewright.checks.fixed_text import DocumentFix, FixedText, PatchOperation
from gatewright.outputs import SubjectResult, write_file
from webhook.messages import count_noun

ReportedDocument = tuple[Document, SubjectResult]
COMMAND = re.compile(r"^ (\s*)::")  # GitHub also runs indented commands


@dataclass(frozen=True, slots=True)
class FixedFile:
    """A file, its text before and after, and how many fields were fixed or left out.

    `shared` fields are left out since their text is that of other fields, too; `too_many` since
    verifying them would take too long.
    """

    path: Path
    before: str
    after: str
    count: int
    left_out: int
    shared: int
    too_many: int
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
        source, distinct = document.source, dict[bytes, tuple[PatchOperation, bool]]()
        for fix in _fixes_of(result, defaults=defaults, adds_items=adds_items):
            distinct.setdefault(orjson.dumps(fix), fix)
        chosen = [operation for operation, is_safe in distinct.values() if is_safe or unsafe]
        hidden += len(distinct) - len(chosen)
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
    notes += [
        f"{file.path}: {count_noun(file.too_many, 'fix', 'es')} left out: they take too long in a "
        "text of this size; split the file, or write out its aliases"
        for file in files
        if file.too_many
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
    return FixedFile(
        path, before, text.text, text.count, left_out, text.shared, text.too_many, encoding
    )
