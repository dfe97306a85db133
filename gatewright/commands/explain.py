"""`gatewright explain`: the list of policies, or one policy's page."""

import click
from pydantic_core import PydanticUndefined
from rich.text import Text

from config.faults import did_you_mean
from config.settings import Settings
from gatewright.options import POLICIES, settings_options
from gatewright.terminal import console, table
from webhook.engine import Policy
from webhook.policies import catalogue


@click.command
@settings_options(*POLICIES)
@click.argument("policy", required=False)
def command(settings: Settings, policy: str | None) -> None:
    """List the policies, or print the page of one POLICY: what it says, why, the fix, and its parameters."""
    del settings  # taken in already: the policies are in the catalogue
    policies = catalogue()
    if policy is None:
        rows = [(name, each.category, does(each), summary(each)) for name, each in sorted(policies.items())]
        console().print(table(rows, ("POLICY", "CATEGORY", "DOES", "SUMMARY")))
        return
    if policy not in policies:
        raise click.BadParameter(f'no policy "{policy}"{did_you_mean(policy, policies)}', param_hint="POLICY")
    out = console()
    out.print(Text(policy, style="bold"))
    out.print(Text(f"\n{policies[policy].documentation}\n"))
    out.print(Text(f"Looks at: {', '.join(dict.fromkeys(targets(policies[policy])))}"))
    if policies[policy].always:
        out.print(Text("In force without being asked for."))
    parameters = [tuple(row) for row in params(policies[policy])]
    if parameters:
        out.print(Text("\nParameters", style="bold"))
        out.print(table(parameters, ("NAME", "DEFAULT", "MEANING")))


def summary(policy: Policy) -> str:
    """Return the first line of a policy's page."""
    return policy.documentation.partition("\n")[0]


def does(policy: Policy) -> str:
    """Return whether a policy denies, sets defaults, or both."""
    return " and ".join(["denies"] * (policy.validate is not None) + ["sets"] * (policy.mutate is not None))


def targets(policy: Policy) -> list[str]:
    """Return the kinds and subresources a policy looks at, as a reader knows them."""
    return [f"{each.kind.kind}{f'/{each.subresource}' if each.subresource else ''}" for each in policy.targets]


def params(policy: Policy) -> list[tuple[str, str, str]]:
    """Return name, default and meaning of each parameter."""
    return [
        (name, "required" if field.default is PydanticUndefined else _yaml(field.default), field.description or "")
        for name, field in policy.params.model_fields.items()
    ]


def _yaml(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)
