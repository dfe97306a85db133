"""`gatewright export`: write policies as Kubernetes' own admission policies."""

from pathlib import Path

import click

from config.documents import DocumentError, readable_documents_at
from gatewright.console.options import NamedPath, PolicyPath
from gatewright.console.terminal import complain, echo
from gatewright.outputs import write_file
from gatewright.tools.export import export, static_files, text_of
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import read_valid, without_cases


@click.command
@click.option(
    "--static",
    "directory",
    type=NamedPath(path_type=Path, file_okay=False),
    metavar="DIR",
    help="write DIR for the API server's own files, which no user can change (Kubernetes 1.36)",
)
@click.argument("format", type=click.Choice(["vap"]))
@click.argument("sets", nargs=-1, required=True, type=PolicyPath(), metavar="SET…")
def command(format: str, sets: tuple[Path, ...], *, directory: Path | None) -> int:
    """Print policy sets as Kubernetes' own admission policies, with bindings.

    SET is a preset, a file or a directory. Rules in CEL are exported, and those built-in policies
    that CEL expresses exactly. Losses are printed on standard error and written as comments. Exit
    code 1: some policies are not exported; 3: some objects cannot be read, or are invalid.
    """
    documents, problems = readable_documents_at(sets)
    _, invalid = read_valid(documents, catalogue())
    problems += (line for each in invalid for line in each.lines)
    left_out = {id(each.document) for each in invalid}
    valid = [each for each in without_cases(documents) if id(each) not in left_out]
    exported = list(export(valid, static=directory is not None))
    for policy in exported:
        for text in policy.lost:
            complain(f"{policy.name}: {text}")
    if directory is None:
        for policy in exported:
            if policy.objects:
                echo(text_of(policy.name, policy.lost, policy.objects).rstrip())
    else:
        for path, text in static_files(exported, directory.resolve()).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, text)
    if problems:
        raise DocumentError("\n".join(problems))
    return 0 if all(each.objects for each in exported) else 1
