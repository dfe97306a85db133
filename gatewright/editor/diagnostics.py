"""Judge a text that is being typed: violations with their places, pages and fixes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from config.documents import Document, DocumentError, yaml_files
from config.edits import TextEdit
from config.faults import FaultsError, parse
from config.lines import Position
from config.settings import Settings
from gatewright.checks.check_report import LEVELS, policy_infos, problem
from gatewright.checks.fixes import FieldChange, FixedText, change_of
from gatewright.checks.policy_files import policy_documents
from gatewright.editor.cel_places import cel_place
from gatewright.editor.text_parts import TextPart, documents_in, parts_of
from gatewright.explain.policy_pages import prose
from gatewright.outputs import PolicyInfo
from gatewright.plans.planners import planners_of
from webhook.engine import Engine
from webhook.engine.match import Labels
from webhook.findings import Finding
from webhook.harness.case_file import CaseFile
from webhook.harness.manifests import ManifestJudge, add_manifests
from webhook.harness.objects import is_object
from webhook.known import Known
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import PolicySet, in_force, read


@dataclass(frozen=True, slots=True)
class EditorDiagnostic:
    """A violation, or why something is not judged.

    Line and columns count from 0. `page` is the policy's; `change` fixes it in `document`.
    """

    line: int
    column: int
    end: int
    message: str
    level: str = "error"
    policy: str = ""
    page: str = ""
    part: TextPart | None = None
    document: Document | None = None
    change: FieldChange | None = None


class EditorPolicies:
    """The policies in force in an editor; their files are read again when they change."""

    def __init__(
        self, settings: Settings, home: str, namespace: str, labels: Mapping[str, Labels]
    ) -> None:
        """Use these settings, and this namespace for objects without one."""
        self._settings = settings
        self._home = home
        self._namespace = namespace
        self._labels = labels
        self._read: dict[Path, int] | None = None
        self.engine = Engine(())
        self.infos: Mapping[str, PolicyInfo] = {}

    def refresh(self) -> None:
        """Read changed files.

        Raises DocumentError, PolicySetError or ConflictingPoliciesError where they cannot be used;
        the policies of before stay in force.
        """
        files = {
            file: file.stat().st_mtime_ns if file.exists() else 0
            for path in self._settings.policies
            for file in yaml_files(path)
        }
        if files == self._read:
            return
        self._read = files
        documents = policy_documents(self._settings.policies)
        found = read(documents, catalogue()) if documents else PolicySet((), ())
        policies = in_force(found, catalogue(), self._home)
        self.engine = Engine(policies, planners_of(self._settings, self._home))
        self.infos = policy_infos(policies)

    def judge(self, documents: Sequence[Document]) -> ManifestJudge:
        """Return the judge of documents of one text, which also are what policies look up."""
        known = Known()
        add_manifests(known, documents, self._namespace)
        for namespace, labels in self._labels.items():
            known.set_labels(namespace, labels)
        return ManifestJudge(self.engine, known, self._namespace, datetime.now(UTC))


@dataclass(slots=True)
class OpenText:
    """A text in an editor. What is half typed is judged as it was when it could be parsed."""

    source: str
    policies: EditorPolicies
    _last: list[tuple[Document, ...]] = field(default_factory=list)
    # By document and path: finding a place takes longer than judging.
    _places: dict[tuple[int, str], Position] = field(default_factory=dict)

    def diagnostics(self, text: str) -> list[EditorDiagnostic]:
        """Return everything to show of the text."""
        parts = list(parts_of(text))
        parsed = [documents_in(each.text, self.source) for each in parts]
        last = self._last if len(self._last) == len(parts) else [()] * len(parts)
        self._last = [
            old if isinstance(new, DocumentError) else new
            for old, new in zip(last, parsed, strict=True)
        ]
        kept = {id(each) for part in self._last for each in part}
        self._places = {key: place for key, place in self._places.items() if key[0] in kept}
        judge = self.policies.judge([each for part in self._last for each in part])
        found: list[EditorDiagnostic] = []
        for part, new, documents in zip(parts, parsed, self._last, strict=True):
            lines = part.text.split("\n")
            if isinstance(new, DocumentError):
                found.append(_failed(part, lines, new))
            for document in documents:
                found += self._of(document, judge, part, lines)
        return found

    def _of(
        self, document: Document, judge: ManifestJudge, part: TextPart, lines: list[str]
    ) -> Iterator[EditorDiagnostic]:
        value = document.value
        if isinstance(value, dict) and "cases" in value:
            try:
                parse(CaseFile, value)
            except FaultsError as error:
                for path, text in error.faults:
                    yield _at(part, lines, document.place(path), f"{path}: {text}")
        elif is_object(document):
            try:
                findings = judge(document).findings
            except DocumentError as error:
                yield _failed(part, lines, error)
                return
            for each in findings:
                key = id(document), each.path
                if key not in self._places:
                    self._places[key] = document.place(each.path)
                place = cel_place(lines, self._places[key], each.message)
                yield _at(
                    part,
                    lines,
                    place,
                    each.message,
                    level=LEVELS[each.action],
                    policy=each.policy,
                    page=self._page(each),
                    document=document,
                    change=change_of(each, self.policies.infos),
                )

    def _page(self, finding: Finding) -> str:
        """Return the page of the policy, or of the one that it checks by, in Markdown."""
        if finding.violation is not None and finding.violation.check:
            text = catalogue()[finding.violation.check].documentation
        else:
            info = self.policies.infos.get(finding.policy)
            text = "" if info is None else info.documentation
        return "\n\n".join(prose(text))


def fixes_of(text: str, found: Sequence[EditorDiagnostic]) -> Iterator[TextEdit]:
    """Yield the edits of a text that fix violations: one of each document, where a value does."""
    for part in parts_of(text):
        changes = [
            (each.document, each.change)
            for each in found
            if each.part == part and each.document is not None and each.change is not None
        ]
        source = changes[0][0].source if changes else ""
        if not changes or isinstance(documents_in(part.text, source), DocumentError):
            continue  # it is half typed: the violation is one of the text before
        fixed = FixedText(part.text, source)
        fixed.change(changes)
        old, new = part.text, fixed.text
        if old != new:
            begin = _same(old, new)
            end = _same(old[begin:][::-1], new[begin:][::-1])
            at = part.start + begin
            yield TextEdit(at, part.start + len(old) - end, new[begin : len(new) - end])


def _same(one: str, other: str) -> int:
    """Return how many characters two texts have in common at the beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _failed(part: TextPart, lines: list[str], error: DocumentError) -> EditorDiagnostic:
    found = problem(error)
    return _at(part, lines, (found.place.line, 1), found.message)


def _at(
    part: TextPart, lines: list[str], place: tuple[int, int], message: str, **more: Any
) -> EditorDiagnostic:
    """Return a diagnostic from a place of a part to the end of its line."""
    line = min(place[0], len(lines)) - 1
    text = lines[line].rstrip()
    column = min(place[1] - 1, len(text))
    if place[1] == 1:
        column = len(text) - len(text.lstrip())
    return EditorDiagnostic(
        part.line + line, column, max(len(text), column), message, part=part, **more
    )
