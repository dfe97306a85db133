"""The report model of all formats: results with violations, and unjudged files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kube.resource import title
from webhook.engine import ChildField

NOTHING: Mapping[str, Any] = {}
LEVELS = ("error", "warning", "note")
SEVERITIES = ("critical", "high", "medium", "low")
# Levels that make exit code 1.
FAIL_AT = {"deny": ("error",), "warn": ("error", "warning"), "never": ()}
# The policy name in all formats for a file that could not be read, parsed or judged.
PROBLEM = "not-judged"


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A field in a file; `file` is "" for a live object.

    Line and column count from 1; 0 means unknown.
    """

    file: str = ""
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}" if self.file else "cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedViolation:
    """One violation of a result: policy, field and message; `check` is the rule of the policy.

    `level` is one of LEVELS; `action` is Deny, Warn, Audit, or Error if the policy could not
    decide; `patch` is a JSON Patch that fixes it, if a value can; `patch_is_safe` means that the
    patch cannot stop an application. `child` is the planned object that is denied.
    """

    policy: str
    message: str
    check: str = ""
    level: str = "error"
    action: str = "Deny"
    path: str = ""
    place: SourceLocation = SourceLocation()
    severity: str = "medium"
    category: str = ""
    found: str = ""
    rule: str = ""
    fix: str = ""
    patch: tuple[Mapping[str, Any], ...] = ()
    patch_is_safe: bool = False
    child: ChildField | None = None

    @property
    def rule_name(self) -> str:
        """The name of the rule in the report's policies."""
        return f"{self.policy}/{self.check}" if self.check else self.policy


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectResult:
    """One judged object or one case: the verdict in a word or two, and the violations.

    `operations` is the JSON Patch of the fields that policies set.
    """

    kind: str
    name: str
    verdict: str
    namespace: str = ""
    place: SourceLocation = SourceLocation()
    violations: tuple[ReportedViolation, ...] = ()
    operations: tuple[Mapping[str, Any], ...] = ()

    @property
    def title(self) -> str:
        """Kind, namespace and name."""
        return title(self.kind, self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class InputProblem:
    """A file or document that could not be read, parsed or judged.

    `whole` is true if the error has no line.
    """

    message: str
    place: SourceLocation = SourceLocation()
    whole: bool = False

    @property
    def where(self) -> str:
        """File and line, only the file for an error without a line, or ""."""
        return self.place.file if self.whole or not self.place.file else str(self.place)

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


@dataclass(frozen=True, slots=True)
class PolicyInfo:
    """The description of a policy: a summary, and its documentation as text ("" for none)."""

    name: str
    summary: str = ""
    documentation: str = ""
    severity: str = "medium"
    category: str = ""


@dataclass(frozen=True, slots=True)
class Ending:
    """An exception that expires soon: its policies, the RFC 3339 time, and its reason."""

    policies: tuple[str, ...]
    expires: str
    reason: str
    place: SourceLocation = SourceLocation()


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a command.

    `command` is its name; `notes` are lines for the user that change no verdict.

    Results with a verdict in `unlisted` are counted in the table, not listed. `generated` is the
    RFC 3339 time of the report, for formats that show it.
    """

    command: str
    results: tuple[SubjectResult, ...] = ()
    problems: tuple[InputProblem, ...] = ()
    notes: tuple[str, ...] = ()
    policies: Mapping[str, PolicyInfo] = field(default_factory=lambda: NOTHING)
    ending: tuple[Ending, ...] = ()
    unlisted: frozenset[str] = frozenset()
    generated: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """The number of results by verdict, in the order of their first appearance."""
        counts: dict[str, int] = {}
        for result in self.results:
            counts[result.verdict] = counts.get(result.verdict, 0) + 1
        return counts

    @property
    def violations(self) -> list[tuple[SubjectResult, ReportedViolation]]:
        """Every violation with its result, in order."""
        return [(result, each) for result in self.results for each in result.violations]

    def exit_code(self, fail_on: str = "deny") -> int:
        """Return 3 if a policy could not decide or a file was not judged.

        Otherwise, return 1 if a violation has a level that fails, else 0.
        """
        if self.problems or any(each.action == "Error" for _, each in self.violations):
            return 3
        levels = FAIL_AT[fail_on]
        return int(any(each.level in levels for _, each in self.violations))

    def info(self, policy: str) -> PolicyInfo:
        """Return the description of a policy; for an unknown one, only its name."""
        return self.policies.get(policy) or PolicyInfo(policy)


def worst_first(report: Report) -> list[tuple[SubjectResult, ReportedViolation]]:
    """Return every violation with its result: by level, then by severity, then in order."""
    return sorted(
        report.violations,
        key=lambda each: (LEVELS.index(each[1].level), SEVERITIES.index(each[1].severity)),
    )
