"""The option -o: choose output formats and their files, and write them.

`write` escapes every text of a report, so that no name of an object or file starts a CI command.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from config.documents import DocumentError
from config.faults import did_you_mean
from config.printable import COMMAND_MARK, printable_record
from gatewright.checks.checked_tree import CheckedTree
from gatewright.console.terminal import columns, complain, has_colours
from gatewright.outputs import table
from gatewright.outputs.results import FAIL_AT, Report

FORMATS = ("table", "json", "sarif", "junit", "github", "markdown", "html")
EXACT = ("json", "sarif")  # formats with their own escapes
MARK = re.compile(COMMAND_MARK)
WITH_LINES = ("message", "notes")  # fields whose texts may have several lines
MAX_NOTES = 50  # limit for tables; JSON lists all
# Environment variable: the Markdown file of a GitHub Actions step.
JOB_SUMMARY = "GITHUB_STEP_SUMMARY"


@dataclass(frozen=True, slots=True)
class Output:
    """One format and the file it is written to; None is standard output."""

    format: str
    file: Path | None = None


class _OutputType(click.ParamType[Output]):
    name = "FORMAT[=FILE]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Output:
        if isinstance(value, Output):
            return value
        format, equals, file = str(value).partition("=")
        if format not in FORMATS:
            self.fail(f'no format "{format}"{did_you_mean(format, FORMATS)}', param, ctx)
        if equals and not file:
            self.fail("an empty file name", param, ctx)
        return Output(format, Path(file) if file else None)


def _one_each(
    _: click.Context, __: click.Parameter, outputs: tuple[Output, ...]
) -> tuple[Output, ...]:
    """Return the outputs, with a table on standard output unless a format goes there.

    Only one format goes to standard output, and only one to each file.

    If a table is written to a file, none is printed.
    """
    printed = [each.format for each in outputs if each.file is None]
    if len(printed) > 1:
        raise click.BadParameter(
            f"only one format can go to standard output, not {' and '.join(printed)}"
        )
    written = dict[str, str]()
    for output in outputs:
        if output.file is not None:
            other = written.setdefault(os.path.realpath(output.file), output.format)
            if other != output.format:
                raise click.BadParameter(
                    f"only one format can go to {output.file}, not {other} and {output.format}"
                )
    has_table = any(each.format == "table" for each in outputs)
    return outputs if printed or has_table else (*outputs, Output("table"))


OUTPUTS: Callable[[Any], Any] = click.option(
    "-o",
    "--output",
    "outputs",
    type=_OutputType(),
    multiple=True,
    callback=_one_each,
    help=f"how to print, or write to a file: {', '.join(FORMATS)}; may be repeated [table]",
)
FAIL_ON: Callable[[Any], Any] = click.option(
    "--fail-on",
    type=click.Choice([*FAIL_AT]),
    default="deny",
    help=(
        "violations that make the exit code 1: those that deny, also those that warn, or none "
        "[deny]"
    ),
)


def write(report: Report, outputs: tuple[Output, ...]) -> None:
    """Write the report in each format; notes and problems go to standard error."""
    # The mapping `policies` is not changed: summaries and documentation are not escaped.
    exact, report = report, printable_record(report, WITH_LINES)
    for output in outputs:
        shown = exact if output.format in EXACT else report
        if output.file is not None:
            write_file(output.file, _render(shown, output.format))
        elif output.format == "table":
            click.echo(table.render(report, columns(), colours=has_colours()), nl=False, color=True)
        else:
            click.echo(_render(shown, output.format), nl=False)
        if output.format == "github" and (file := os.environ.get(JOB_SUMMARY)):
            with Path(file).open("a", encoding="utf-8") as job_summary:
                job_summary.write(_render(report, "markdown"))
    more = len(report.notes) - MAX_NOTES
    for note in [*report.notes[:MAX_NOTES], *[f"and {more} more notes"] * (more > 0)]:
        complain(f"note: {note}")
    for problem in report.problems:
        complain(str(problem))


def write_file(file: Path, text: str, encoding: str = "utf-8") -> None:
    """Write a file, but not by a link out of the Git work tree: a pull request may have it.

    Raises DocumentError with its name if it cannot be written.
    """
    CheckedTree.of(file).require_writable(file)
    try:
        file.write_text(text, encoding, newline="")
    except OSError as error:  # a full disk names no file
        raise DocumentError(f"{file}: {error.strerror}") from None


def _render(report: Report, format: str) -> str:
    text: str = import_module(f"gatewright.outputs.{format}").render(report)
    # JSON has no number sign outside of texts.
    return MARK.sub(r"\\u0023\\u0023", text) if format in EXACT else text
