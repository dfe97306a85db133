"""`gatewright policies`: list the presets and the policies, or those of a cluster."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import click

from config.presets import ALL, presets, summary_of
from config.settings import Settings
from gatewright.console.options import CLUSTER, POLICIES, settings_options
from gatewright.console.terminal import say, table
from gatewright.explain.policy_pages import does
from webhook.policy_sets.catalogue import catalogue

HEAD = ("POLICY", "ACTIONS", "READY", "ENFORCED", "MESSAGE")
NOT_MEASURED = "-"


@click.command
@settings_options(*POLICIES, *CLUSTER)
def command(settings: Settings) -> None:
    """List the presets, which --policies takes by name, and the policies for policy sets.

    The rules of Gatewright's own kinds are always in force, and listed last. With --kubeconfig,
    list the policy objects of that cluster instead: whether each is in force, and whether the API
    server enforces it.
    """
    if settings.kubeconfig is not None:
        table(asyncio.run(_cluster_rows(settings)), HEAD)
        return
    named = [(name, summary_of(path)) for name, path in presets().items()]
    table([*named, (ALL, "All of these")], ("PRESET", "FOR"))
    ordered = sorted(catalogue().items())
    for always, title in ((False, "POLICY"), (True, "OF OWN KINDS")):
        say("")
        rows = [
            (name, policy.category, does(policy), policy.summary)
            for name, policy in ordered
            if policy.always is always
        ]
        table(rows, (title, "CATEGORY", "DOES", "SUMMARY"))


async def _cluster_rows(settings: Settings) -> list[tuple[str, ...]]:
    """Return a row for each policy object of the cluster."""
    # Imported here: without a cluster, they are not needed.
    from config.api.policy import AdmissionPolicy, ClusterAdmissionPolicy
    from kube.client import Client
    from kube.credentials import load
    from kube.resource import title_of

    rows = list[tuple[str, ...]]()
    async with Client(await load(settings.kubeconfig, settings.context)) as client:
        for kind in (ClusterAdmissionPolicy, AdmissionPolicy):
            listed = client.list(kind.definition.resource)
            rows += [_row(title_of(each).partition(" ")[2], each) async for each in listed]
    return sorted(rows)


def _row(title: str, object: Mapping[str, Any]) -> tuple[str, ...]:
    actions = ", ".join(object["spec"].get("validationActions") or ["Deny"])
    conditions = {each["type"]: each for each in (object.get("status") or {}).get("conditions", ())}
    ready, enforced = conditions.get("Ready"), conditions.get("Enforced")
    return (
        title,
        actions,
        "Unknown" if ready is None else ready["status"],
        NOT_MEASURED if enforced is None else enforced["status"],
        "; ".join(_problems(filter(None, (ready, enforced)))),
    )


def _problems(conditions: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """Yield reason and message of the conditions that are not True."""
    for condition in conditions:
        if condition["status"] != "True":
            yield f"{condition['reason']}: {' '.join(condition['message'].split())}"
