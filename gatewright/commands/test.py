"""`gatewright test`: run case files against policies."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click

from config.documents import (
    Document,
    DocumentError,
    read_documents,
    readable_documents,
    readable_yaml_files,
)
from config.printable import printable
from config.schemas import CustomTypes
from config.settings import Settings
from gatewright.cases import file_watch as watching
from gatewright.cases import last_failed
from gatewright.cases.case_report import coverage_lines, mutant_lines, results
from gatewright.cases.written_cases import write_cases
from gatewright.checks.check_report import problem, problems_of
from gatewright.console.options import FILE, POLICIES, settings_options
from gatewright.console.terminal import INDENT, complain, progress, say
from gatewright.outputs import OUTPUTS, InputProblem, Output, Report, write, write_file
from webhook.engine.exceptions import HOME
from webhook.harness.cases import Trial, load_trials
from webhook.harness.coverage import coverage, percent
from webhook.harness.mutants import Mutant, try_mutants
from webhook.harness.objects import is_object
from webhook.harness.trial import Tried, attempt
from webhook.harness.update import update_expectations
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import carries_cases

PASSED = frozenset({"passed"})
DEFINITION = "CustomResourceDefinition"  # tells the fields of a custom kind


@click.command
@settings_options("policies", *POLICIES)
@OUTPUTS
@click.option("-v", "--verbose", is_flag=True, help="list passing cases too")
@click.option(
    "-k",
    "words",
    multiple=True,
    metavar="TEXT",
    help="run only cases whose file or name contains TEXT",
)
@click.option(
    "--last-failed",
    "only_failed",
    is_flag=True,
    help="run only the cases that failed in the last run",
)
@click.option(
    "--update", is_flag=True, help="rewrite the expectations of failing cases to the actual answers"
)
@click.option("--watch", is_flag=True, help="run again whenever a file changes, until Ctrl-C")
@click.option(
    "--coverage", "covers", is_flag=True, help="report what the cases of each policy do not cover"
)
@click.option(
    "--coverage-fail-under",
    "least",
    type=click.FloatRange(0, 100),
    metavar="PERCENT",
    help="exit with 1 below this coverage",
)
@click.option(
    "--mutate",
    is_flag=True,
    help="change the policies in one place at a time; list the changes that no case detects",
)
@click.option(
    "--write-cases",
    "written",
    type=FILE,
    metavar="FILE",
    help="write cases to FILE: what the set of --policies answers today to the recorded reviews "
    "(one JSON object per line) and manifests at PATH",
)
@click.argument("paths", nargs=-1, required=True, type=FILE, metavar="PATH…")
def command(
    settings: Settings,
    paths: tuple[Path, ...],
    outputs: tuple[Output, ...],
    words: tuple[str, ...],
    least: float | None,
    written: Path | None,
    *,
    verbose: bool,
    only_failed: bool,
    update: bool,
    watch: bool,
    covers: bool,
    mutate: bool,
) -> int:
    """Run the case files at PATH (files or directories) through the webhook's own code.

    Rules in CEL are checked by the CustomResourceDefinitions at PATH, too.

    A case passes when the whole answer is the expected one. A case that no policy applies to never
    passes as allowed.
    """
    if written is not None:
        return _write_cases(settings, paths, written)
    if settings.policies:
        raise click.UsageError("--policies is for --write-cases; case files name their policies")
    if watch:
        return watching.run([*paths, *settings.policies_dir])
    trials, problems = _load(paths, settings.namespace or HOME)
    failed_before = last_failed.read() if only_failed else None
    chosen = [trial for trial in trials if _is_chosen(trial, words, failed_before)]
    if trials and not chosen:
        selections = ["-k"] * bool(words) + ["--last-failed"] * only_failed
        raise DocumentError(f"no case matches {' and '.join(selections)}")
    done = list(_try_cases(chosen, problems))
    if update and (rewritten := _update(done, problems)):
        complain(f"updated {printable(', '.join(rewritten))}; review the changes")
    last_failed.write(each.trial for each in done if each.differences)
    report = Report(
        "test",
        tuple(results(done)),
        tuple(problems),
        unlisted=frozenset() if verbose else PASSED,
    )
    write(report, outputs)
    to_stderr = all(each.file is not None or each.format != "table" for each in outputs)
    tell = complain if to_stderr else partial(say, indent=INDENT)
    coverages = coverage(done) if covers or least is not None else []
    for line in coverage_lines(coverages) if covers else ():
        tell(line)
    if mutate:
        for line in mutant_lines(_mutate(done)):
            tell(line)
    too_little = least is not None and percent(coverages) < least
    if too_little:
        click.echo(f"coverage is {percent(coverages):.1f} %, below {least:g} %", err=True)
    return max(report.exit_code(), int(too_little))


def _write_cases(settings: Settings, paths: tuple[Path, ...], file: Path) -> int:
    """Write a case file; return 3 if no case describes a request that policies judge."""
    if len(settings.policies) != 1 or not settings.policies[0].is_file():
        raise click.UsageError("--write-cases needs one policy set: --policies PRESET or FILE")
    written = write_cases(settings.policies[0], paths, settings.namespace or HOME, file.parent)
    for line in (*written.failed, *written.unmatched):
        complain(f"left out: {printable(line)}")
    if not written.number:
        raise DocumentError(f"{', '.join(map(str, paths))}: no request that the policies judge")
    write_file(file, written.text)
    complain(f"{printable(file)}: {written.number} case{'s' * (written.number != 1)}")
    return 3 if written.failed else 0


def _load(paths: tuple[Path, ...], home: str) -> tuple[list[Trial], list[InputProblem]]:
    """Return the trials of all readable documents, and the errors of the others."""
    trials: list[Trial] = []
    problems: list[InputProblem] = []
    files = dict[str, Path]()
    for path in paths:
        unread = list[str]()
        files_of_path = readable_yaml_files(path, unread.append) if path.is_dir() else [path]
        problems += map(problem, unread)
        if not (files_of_path or unread):
            problems.append(problem(f"{printable(path)}: no YAML files in this directory"))
        files |= {os.path.realpath(file): file for file in files_of_path}
    objects = {file: within for file in files.values() if (within := _only_objects(file))}
    custom = CustomTypes.of(each.value for within in objects.values() for each in within)
    for file in files.values():
        found_objects = objects.get(file, ())
        is_definition = [each.value.get("kind") == DEFINITION for each in found_objects]
        if found_objects and (file not in paths or all(is_definition)):
            problems += map(problem, readable_documents(read_documents(file))[1])
            if not all(is_definition):
                complain(f"{printable(file)}: skipped: objects, not cases")
            continue
        try:
            for trial in load_trials(file, catalogue(), home, custom):
                trials.append(trial)  # noqa: PERF402 (kept when the next one raises)
        except DocumentError as error:
            problems += problems_of(error)
    if not trials and not problems:
        raise DocumentError(f"{', '.join(map(str, paths))}: no cases")
    return trials, problems


def _only_objects(file: Path) -> list[Document]:
    """Return the objects of a file that has nothing else: no cases, and no policies with cases."""
    documents, _ = readable_documents(read_documents(file))
    has_cases = any(carries_cases(each.value) for each in documents)
    return [] if has_cases or not all(map(is_object, documents)) else documents


def _try_cases(trials: list[Trial], problems: list[InputProblem]) -> Iterator[Tried]:
    """Yield each trial with its answer.

    A trial whose object no API server would send becomes a problem.
    """
    for trial in progress(trials, "cases tried"):
        try:
            yield attempt(trial)
        except DocumentError as error:
            problems += problems_of(error)


def _is_chosen(trial: Trial, words: tuple[str, ...], failed_before: frozenset[str] | None) -> bool:
    title = f"{trial.document.source} {trial.name}"
    named = not words or any(word in title for word in words)
    return named and (failed_before is None or last_failed.key(trial) in failed_before)


def _update(done: list[Tried], problems: list[InputProblem]) -> list[str]:
    """Rewrite the files whose cases failed; return their names.

    Cases that cannot be updated become problems.
    """
    rewritten = []
    by_file: dict[str, dict[str, list[Tried]]] = {}
    for tried_case in done:
        by_file.setdefault(tried_case.trial.document.source, {}).setdefault(
            tried_case.trial.where, []
        ).append(tried_case)
    for source, cases in by_file.items():
        failing = [tries for tries in cases.values() if any(each.differences for each in tries)]
        old = Path(source).read_bytes().decode()  # places count both characters of CRLF
        new, faults = update_expectations(old, failing)
        problems += map(InputProblem, faults)
        if new != old:
            write_file(Path(source), new)
            rewritten.append(source)
    return rewritten


def _mutate(done: list[Tried]) -> Iterator[tuple[Mutant, bool]]:
    """Yield each mutant and whether it survives its file's cases.

    Only passing cases can detect a mutant.
    """
    by_file: dict[str, list[Trial]] = {}
    for tried_case in done:
        if not tried_case.differences:
            by_file.setdefault(tried_case.trial.document.source, []).append(tried_case.trial)
    for trials in progress(list(by_file.values()), "files mutated"):
        yield from try_mutants(trials, catalogue())
