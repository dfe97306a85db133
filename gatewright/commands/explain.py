"""`gatewright explain`: print the page of a policy, or the rules of policy objects."""

import re
from pathlib import Path

import click

from config.documents import Document, documents_at
from config.faults import did_you_mean
from config.presets import policy_path, presets
from config.settings import Settings
from gatewright.console.options import POLICIES, NamedPath, settings_options
from gatewright.console.terminal import columns, echo, say, table
from gatewright.explain.policy_pages import fixes, parameters, reads_registries, targets
from webhook.engine import Policy
from webhook.policy_sets.admission_policies import native_policies
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import read, without_cases

CONTINUED = re.compile(r"\n(?!(?:Why|Judged|Allowed|Denied|Sets|Warns|Fix|See):) *")

READS_REGISTRIES = "Reads registries: in `check` and `impact` only with --registry-access."


@click.command
@settings_options(*POLICIES)
@click.argument("policy", type=NamedPath())
def command(settings: Settings, policy: str) -> None:
    """Print the page of a POLICY (`gatewright policies` lists them), with its parameters.

    With a preset, or a file or directory of policy objects, as POLICY, list the rules in it and the
    kinds they apply to.
    """
    del settings  # settings_options has added the policies to the catalogue
    policies = catalogue()
    is_module = policy.endswith(".py")
    if policy not in policies and not is_module and (policy in presets() or Path(policy).exists()):
        _explain_objects(without_cases(documents_at([policy_path(policy)])))
        return
    if is_module:
        raise click.BadParameter(
            f"{policy} is a module; name its policy, and its directory by --policies-dir",
            param_hint="POLICY",
        )
    if policy not in policies:
        raise click.BadParameter(
            f'no policy "{policy}"{did_you_mean(policy, policies)}', param_hint="POLICY"
        )
    _describe(policy, policies[policy])
    if policies[policy].always:
        say("Always in force.")
    if reads_registries(policies[policy].needs):
        say(READS_REGISTRIES)
    if text := fixes(policies[policy]):
        say(text)
    rows = [(each.name, each.default, each.meaning) for each in parameters(policies[policy])]
    if rows:
        say("\nParameters", "bold")
        table(rows, ("NAME", "DEFAULT", "MEANING"))


def _explain_objects(documents: list[Document]) -> None:
    """Print the rules of policy objects, and Kubernetes' own policies without a binding."""
    for bound in read(documents, catalogue()).policies:
        _describe(bound.title, bound.policy)
        if reads_registries(bound.needs):
            say(READS_REGISTRIES)
        say("")
    for native in native_policies(documents)[0]:
        if not native.policies:
            kind, name = native.document.value["kind"], native.document.value["metadata"]["name"]
            echo(name, "bold")
            say(f"\nNot in force: no {kind}Binding beside it names this {kind}.\n")


def _describe(title: str, policy: Policy) -> None:
    """Print the documentation of a policy, and the kinds it applies to."""
    text = policy.documentation
    echo(title, "bold")
    say(f"\n{text if columns() is None else _flow(text)}\n")
    say(f"Applies to: {', '.join(targets(policy))}")


def _flow(documentation: str) -> str:
    """Return a docstring with each paragraph on one line; the terminal wraps them."""
    return "\n\n".join(CONTINUED.sub(" ", paragraph) for paragraph in documentation.split("\n\n"))
