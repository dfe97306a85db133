"""`gatewright export`: write policies as Kubernetes' own admission policies."""

from pathlib import Path

import click

from gatewright.checks.policy_files import policy_documents, policy_set
from gatewright.console.options import PolicyPath
from gatewright.console.terminal import complain, echo
from gatewright.export import export
from gatewright.outputs.yaml_text import written


@click.command
@click.option(
    "--static",
    is_flag=True,
    help="names for files of the API server's staticManifestsDir, which needs no etcd",
)
@click.argument("format", type=click.Choice(["vap"]))
@click.argument("sets", nargs=-1, required=True, type=PolicyPath(), metavar="SET…")
def command(format: str, sets: tuple[Path, ...], *, static: bool) -> int:
    """Print policy sets as Kubernetes' own admission policies, with bindings.

    SET is a preset, a file or a directory. Rules in CEL are exported, and those built-in
    policies that CEL expresses exactly. What is lost is printed on standard error and written as
    comments. Exit code 1: some policies are not exported.
    """
    policy_set(sets)
    is_partial = False
    for each in export(policy_documents(sets), static=static):
        for text in each.lost:
            complain(f"{each.name}: {text}")
        is_partial |= not each.objects
        comments = "".join(f"# {each.name}: {text}\n" for text in each.lost)
        for object in each.objects:
            echo(f"---\n{comments}{written(object)}".rstrip())
            comments = ""
    return 1 if is_partial else 0
