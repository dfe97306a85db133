"""Judge a text that is being typed: violations with their positions, pages and fixes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from config.documents import Document, DocumentError, readable_documents_at, yaml_files
from config.edits import TextEdit
from config.faults import FaultsError, parse
from config.positions import Position
from config.schemas import CustomTypes
from config.settings import Settings
from gatewright.checks.check_report import problems_of
from gatewright.checks.fixed_text import FixedText
from gatewright.checks.loaded_policies import PoliciesInForce, known_of
from gatewright.explain.policy_pages import prose
from gatewright.outputs import ReportedViolation, SubjectResult
from gatewright.processes.planners import planners_of
from gatewright.tools.editor.cel_places import cel_place
from gatewright.tools.editor.definitions import Definitions
from gatewright.tools.editor.yaml_parts import TextPart, documents_in, parts_of
from webhook.engine.match import Labels
from webhook.engine.planners import NO_PLANNERS
from webhook.harness.case_file import CaseFile
from webhook.harness.objects import is_object, is_whole
from webhook.policy_sets.catalogue import catalogue

DocumentJudge = Callable[[Document], SubjectResult]


@dataclass(frozen=True, slots=True)
class EditorDiagnostic:
    """A violation in a document, or an error without a policy.

    Lines and columns count from 0.
    """

    line: int
    column: int
    end: int
    violation: ReportedViolation
    part: TextPart
    document: Document | None = None


class EditorPolicies:
    """The policies in force in an editor; their files are read again when they change."""

    def __init__(
        self,
        settings: Settings,
        home: str,
        namespace: str,
        labels: Mapping[str, Labels],
        root: Path | None = None,
    ) -> None:
        """Use these settings; `namespace` is the default namespace of objects.

        Custom kinds are those that the files below `root` and the open texts define.
        """
        self._settings = settings
        self._home = home
        self._namespace = namespace
        self._labels = labels
        self.definitions = Definitions(root)
        self._read: tuple[dict[Path, int], int] | None = None
        self.in_force = PoliciesInForce.read((), home, NO_PLANNERS, datetime.now(UTC))

    def refresh(self) -> None:
        """Read changed files.

        Raises DocumentError with what is not in force: what is unreadable, invalid or conflicts.
        """
        files = {
            file: file.stat().st_mtime_ns if file.exists() else 0
            for path in self._settings.policies
            for file in yaml_files(path)
        }
        self.definitions.refresh()
        now = datetime.now(UTC)
        self.in_force = replace(self.in_force, now=now)
        if self._read != (files, self.definitions.version):
            self._read = files, self.definitions.version
            documents, unreadable = readable_documents_at(self._settings.policies)
            planners = planners_of(self._settings, self._home)
            custom = CustomTypes.of(each.value for each in self.definitions.besides())
            self.in_force = PoliciesInForce.read(
                documents, self._home, planners, now, custom=custom, unreadable=unreadable
            )
            if problems := self.in_force.problems:
                raise DocumentError("\n".join(map(str, problems)))

    def judge(self, documents: Sequence[Document], source: str) -> tuple[object, DocumentJudge]:
        """Return the judge of the documents of one text, and a token of the policies it uses.

        Policies look up objects among the documents; custom kinds are defined in other files, too.
        """
        self.definitions.open(source, documents)
        all_known = filter(is_whole, [*self.definitions.besides(source), *documents])
        in_force, data = self.in_force, known_of(all_known, self._namespace, self._labels)
        judge = in_force.judge(data, self._namespace)
        needs = frozenset[str]().union(*(each.needs for each in in_force.engine.policies))
        time, defined = f"{in_force.now:%F %H}", self.definitions.version
        depends = in_force.engine, time, data.seen_by(needs), defined
        return depends, lambda document: in_force.result(judge(document))

    def page(self, violation: ReportedViolation) -> str:
        """Return the page of a violation's policy, or of its built-in policy, in Markdown."""
        if violation.check:
            text = catalogue()[violation.check].documentation
        else:
            policy = self.in_force.policies.get(violation.policy)
            text = "" if policy is None else policy.documentation
        return "\n\n".join(prose(text))


@dataclass(slots=True)
class OpenText:
    """A text in an editor; an incomplete document is judged as when it was last valid."""

    source: str
    policies: EditorPolicies
    _last: list[tuple[Document, ...]] = field(default_factory=list)
    _depends: object = None
    # By identity: an unchanged document is the same object.
    _results: dict[int, tuple[Document, SubjectResult]] = field(default_factory=dict)

    def diagnostics(self, text: str) -> list[EditorDiagnostic]:
        """Return all diagnostics of the text."""
        parts = list(parts_of(text))
        parsed = [documents_in(each.text, self.source) for each in parts]
        last = self._last if len(self._last) == len(parts) else [()] * len(parts)
        self._last = [
            old if isinstance(new, DocumentError) else new
            for old, new in zip(last, parsed, strict=True)
        ]
        documents = [each for part in self._last for each in part]
        depends, judge = self.policies.judge(documents, self.source)
        before = self._results if depends == self._depends else {}
        self._depends, self._results = depends, {}

        def result(document: Document) -> SubjectResult:
            judged = before.get(id(document)) or (document, judge(document))
            self._results[id(document)] = judged
            return judged[1]

        diagnostics: list[EditorDiagnostic] = []
        for part, new, of_part in zip(parts, parsed, self._last, strict=True):
            lines = part.text.split("\n")
            if isinstance(new, DocumentError):
                diagnostics += _report_failures(part, lines, new)
            for document in of_part:
                diagnostics += _diagnose(document, result, part, lines)
        return diagnostics


def _diagnose(
    document: Document,
    judge: DocumentJudge,
    part: TextPart,
    lines: list[str],
) -> Iterator[EditorDiagnostic]:
    value = document.value
    if isinstance(value, dict) and "cases" in value:
        try:
            parse(CaseFile, value)
        except FaultsError as error:
            for path, text in error.faults:
                yield _at(part, lines, document.place(path), _report_unjudged(f"{path}: {text}"))
    elif is_object(document):
        try:
            violations = judge(document).violations
        except DocumentError as error:
            yield from _report_failures(part, lines, error)
            return
        for violation in violations:
            place = cel_place(
                lines, (violation.place.line, violation.place.column), violation.message
            )
            yield _at(part, lines, place, violation, document)


def fixes_of(text: str, diagnostics: Sequence[EditorDiagnostic]) -> Iterator[TextEdit]:
    """Yield the edits that fix violations in a text: at most one per document."""
    for part in parts_of(text):
        changes = [
            (shown.document, operation)
            for shown in diagnostics
            if shown.part == part and shown.document is not None
            for operation in shown.violation.patch
        ]
        source = changes[0][0].source if changes else ""
        if not changes or isinstance(documents_in(part.text, source), DocumentError):
            continue  # the document is incomplete: the violation is one of the previous text
        fixed = FixedText(part.text, source)
        fixed.change(changes)
        old, new = part.text, fixed.text
        if old != new:
            begin = _same(old, new)
            end = _same(old[begin:][::-1], new[begin:][::-1])
            at = part.start + begin
            yield TextEdit(at, part.start + len(old) - end, new[begin : len(new) - end])


def _same(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _report_failures(
    part: TextPart, lines: list[str], error: DocumentError
) -> Iterator[EditorDiagnostic]:
    for problem in problems_of(error):
        yield _at(part, lines, (problem.place.line, 1), _report_unjudged(problem.message))


def _report_unjudged(message: str) -> ReportedViolation:
    return ReportedViolation(policy="", message=message)


def _at(
    part: TextPart,
    lines: list[str],
    place: Position,
    violation: ReportedViolation,
    document: Document | None = None,
) -> EditorDiagnostic:
    """Return a diagnostic from a position in a part to the end of its line."""
    line = min(place[0], len(lines)) - 1
    text = lines[line].rstrip()
    column = min(place[1] - 1, len(text))
    if place[1] == 1:
        column = len(text) - len(text.lstrip())
    end = max(len(text), column)
    return EditorDiagnostic(part.line + line, column, end, violation, part, document)
