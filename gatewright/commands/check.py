"""`gatewright check`: judge manifests as the webhook would."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import click
import orjson
from rich.console import Console
from rich.text import Text

from config.documents import documents_of
from config.settings import Settings
from gatewright.options import INSTALLED_IN, POLICIES, NamedPath, settings_options
from gatewright.planning import planners_of
from gatewright.policies import HOME, engine_of
from gatewright.terminal import console, styled
from webhook.engine import BoundPolicy
from webhook.harness.manifests import Judged, judge

BAD = {"denied": 1, "error": 3}
SEVERE, KIND = "high", "kinds"  # where no policy says something, but the type of a kind, or its planner


@click.command
@settings_options("policies", "registry", "controller_account", *POLICIES)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", help="how to print [table]")
@click.option("-n", "--namespace", default="default", help="where objects go that name no namespace [default]")
@INSTALLED_IN
@click.argument("manifests", nargs=-1, required=True, type=NamedPath(), metavar="MANIFEST…")
def command(settings: Settings, manifests: tuple[str, ...], output: str, namespace: str, home: str | None) -> int:
    """Judge MANIFESTs (YAML or JSON files, directories, or - for standard input) as the webhook would.

    What the controller would make of a custom resource is judged with it. Labels of a namespace are known where the
    manifests hold the Namespace; a policy that needs others cannot decide.
    """
    home = home or settings.namespace or HOME
    engine = engine_of(settings.policies, home, planners_of(settings, home))
    judged = list(judge(engine, documents_of(manifests), namespace, datetime.now(UTC)))
    if output == "json":
        policies = {policy.title: policy for policy in engine.policies}
        click.echo(orjson.dumps([_record(each, policies) for each in judged], option=orjson.OPT_INDENT_2))
    else:
        _print(console(), judged)
    return max(BAD.get(each.verdict, 0) for each in judged)


def _record(judged: Judged, policies: Mapping[str, BoundPolicy]) -> dict[str, Any]:
    return {
        "file": judged.document.source,
        "line": judged.document.line(),
        "kind": judged.document.value["kind"],
        "namespace": judged.namespace,
        "name": judged.document.value["metadata"].get("name", ""),
        "verdict": judged.verdict,
        "findings": [
            {
                "policy": each.policy,
                "severity": policies[each.policy].severity if each.policy in policies else SEVERE,
                "category": policies[each.policy].category if each.policy in policies else KIND,
                "path": each.path,
                "line": judged.document.line(each.path),
                "message": each.message,
            }
            for each in judged.findings
        ],
        "patch": list(judged.operations),
    }


def _print(out: Console, judged: list[Judged]) -> None:
    width = max(len(each.verdict) for each in judged)
    for each in judged:
        out.print(styled(each.verdict.ljust(width)), Text(f" {each.title}  ({each.document.where()})"))
        for finding in each.findings:
            out.print(Text(f"  {each.document.where(finding.path)}: {finding.policy}: {finding.message}"))
        for operation in each.operations:
            value = orjson.dumps(operation["value"]).decode() if "value" in operation else ""
            out.print(Text(f"  {operation['op']} {operation['path']} {value}".rstrip(), style="cyan"))
    counts = {
        verdict: sum(each.verdict == verdict for each in judged) for verdict in dict.fromkeys(e.verdict for e in judged)
    }
    objects = "1 object" if len(judged) == 1 else f"{len(judged)} objects"
    out.print(Text(f"{objects}: {', '.join(f'{number} {verdict}' for verdict, number in counts.items())}"))
