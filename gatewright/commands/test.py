"""`gatewright test`: try policies with files of cases."""

from pathlib import Path
from typing import Any

import click
import orjson
from rich.text import Text

from config.documents import DocumentError, yaml_files
from config.settings import Settings
from gatewright.options import POLICIES, NamedPath, settings_options
from gatewright.terminal import console, styled
from webhook.harness.cases import Trial, load_trials
from webhook.harness.trial import differences
from webhook.policies import catalogue


@click.command
@settings_options(*POLICIES)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", help="how to print [table]")
@click.option("-v", "--verbose", is_flag=True, help="name the cases that pass too")
@click.argument("paths", nargs=-1, required=True, type=NamedPath(path_type=Path), metavar="PATH…")
def command(settings: Settings, paths: tuple[Path, ...], output: str, *, verbose: bool) -> int:
    """Run the case files at PATH (files, or directories of them) through the code the server runs.

    A case passes when the whole answer is the expected one; a case that no policy looked at never passes as allowed.
    """
    del settings  # taken in already: the policies are in the catalogue
    trials = [trial for path in paths for file in yaml_files(path) for trial in load_trials(file, catalogue())]
    if not trials:
        raise DocumentError(f"{', '.join(map(str, paths))}: no cases")
    results = [(trial, differences(trial)) for trial in trials]
    if output == "json":
        click.echo(orjson.dumps([_record(*result) for result in results], option=orjson.OPT_INDENT_2))
    else:
        _print(results, verbose=verbose)
    return int(any(different for _, different in results))


def _record(trial: Trial, different: list[str]) -> dict[str, Any]:
    return {"case": trial.name, "where": trial.where, "passed": not different, "differences": different}


def _print(results: list[tuple[Trial, list[str]]], *, verbose: bool) -> None:
    out = console()
    for trial, different in results:
        if different or verbose:
            out.print(styled("failed" if different else "passed"), Text(f"{trial.where}: {trial.name}"))
        for line in different:
            out.print(Text(f"  {line}"))
    failed = sum(bool(different) for _, different in results)
    out.print(Text(f"{len(results) - failed} passed, {failed} failed"))
