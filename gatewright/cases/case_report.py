"""The report of `gatewright test`: results of cases, and lines on coverage and mutants."""

from collections.abc import Iterable, Iterator, Sequence

from gatewright.outputs import ReportedViolation, SourceLocation, SubjectResult
from webhook.harness.coverage import Covered, percent
from webhook.harness.mutants import Mutant
from webhook.harness.trial import Tried


def results(done: Iterable[Tried]) -> Iterator[SubjectResult]:
    """Yield each case as a result; the traceback of an error is shown once, at its first case."""
    shown = set[tuple[str, ...]]()
    for tried in done:
        new = [crash for crash in tried.crashes if crash not in shown]
        shown.update(new)
        yield _result(tried, [line for crash in new for line in crash])


def _result(tried: Tried, crash: Sequence[str]) -> SubjectResult:
    """Return one case as a result, with one line for each difference and of the traceback."""
    document, path = tried.trial.document, tried.trial.path
    place = SourceLocation(document.source, *document.place(path))
    expected = SourceLocation(document.source, *document.place(f"{path}.expect"))
    return SubjectResult(
        kind="case",
        name=tried.trial.name,
        verdict="failed" if tried.differences else "passed",
        place=place,
        violations=tuple(
            ReportedViolation(
                policy=_title(tried), message=difference, path=f"{path}.expect", place=expected
            )
            for difference in (*tried.differences, *crash)
        ),
    )


def _title(tried: Tried) -> str:
    """Return what the case tests: its only policy, or the policy set."""
    policies = tried.trial.engine.policies
    return policies[0].title if len(policies) == 1 else "policy set"


def coverage_lines(coverages: Sequence[Covered]) -> Iterator[str]:
    """Yield a line for each policy, and one for the total."""
    width = max((len(each.policy.title) for each in coverages), default=0)
    for covered in coverages:
        situations = list(covered.situations())
        missing = f"  not tried: {', '.join(covered.missing)}" if covered.missing else ""
        done = f"{len(situations) - len(covered.missing)}/{len(situations)}"
        yield f"{covered.policy.title.ljust(width)}  {covered.cases:4} cases  {done:>7}{missing}"
    total = sum(len(list(each.situations())) for each in coverages)
    yield f"coverage: {percent(coverages):.1f} % of {total} situations"


def mutant_lines(mutants: Iterable[tuple[Mutant, bool]]) -> Iterator[str]:
    """Yield a line for each surviving mutant, and one with the counts."""
    number = survived = 0
    for mutant, survives in mutants:
        number += 1
        if survives:
            survived += 1
            yield f"survived  {mutant.policy}: {mutant.description}"
    yield f"{number} mutants: {number - survived} killed, {survived} survived"
