"""`gatewright export`: write policies as Kubernetes' own admission policies."""

from pathlib import Path

import click

from config.documents import documents_at
from gatewright.console.options import NamedPath, PolicyPath
from gatewright.console.terminal import complain, echo
from gatewright.outputs import write_file
from gatewright.tools.export import export, static_files, text_of
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import read, without_cases


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
    code 1: some policies are not exported.
    """
    documents = without_cases(documents_at(sets))
    read(documents, catalogue())  # an invalid object is an error
    exported = list(export(documents, static=directory is not None))
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
    return 0 if all(each.objects for each in exported) else 1
