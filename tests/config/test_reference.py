"""The reference is current and complete, with a page and a sample for each kind."""

import re
from functools import cache
from typing import Annotated

import pytest
from prometheus_client import CollectorRegistry, Counter
from pydantic import Field

from config.api.core import ResourceRequirements
from config.documents import read_documents
from config.settings import Settings
from controller.reconcilers import own_kinds
from gatewright.kind import ApiModel, Column, CustomResource, Definition, Int32, Status
from tests.config.reference import api, metrics, settings
from tests.config.regenerate import LEFT_OVER, OUTDATED, ROOT, from_code, stale


class Cog(ApiModel):
    """A cog."""

    teeth: Int32 = Field(ge=3, le=99, description="Number of teeth.")


class GearSpec(ApiModel):
    """The desired state."""

    cogs: list[Cog] = Field([], max_length=4, description="Its cogs.")
    name: Annotated[str, Field(pattern="^[a-z]+$")] | None = Field(None, description="Its name.")
    resources: ResourceRequirements | None = Field(None, description="What it may use.")


class Gear(CustomResource):
    """A gear.

    It turns.
    """

    definition = Definition(
        "toys.example.com",
        "v1",
        "Gear",
        "gears",
        ("gr",),
        (Column("Cogs", ".spec.cogs", wide=True),),
    )
    spec: GearSpec
    status: Status = Status()


@pytest.mark.long
def test_the_reference_is_current() -> None:
    """`make manifests` changes none of the committed pages, and leaves none over."""
    expected = from_code()
    assert stale(expected) == [], OUTDATED
    there = {str(path.relative_to(ROOT)) for path in (ROOT / "docs/reference").iterdir()}
    assert there - expected.keys() == set(), LEFT_OVER


def test_fields_are_listed_with_their_limits() -> None:
    """Nested fields are listed, except those that Kubernetes defines."""
    told = api([Gear], {})
    head, _, rows = told.partition("| --- | --- | --- | --- | --- |\n")
    assert "## Gear `toys.example.com/v1`\n\nA gear.\n\n" in head
    assert "Names: `gears`, `gr`; namespaced. Columns: Cogs (wide).\n" in head
    assert rows.splitlines() == [
        "| `spec.cogs` | list of objects | `[]` | at most 4 | Its cogs. |",
        "| `spec.cogs[].teeth` | integer | required | 3 to 99 | Number of teeth. |",
        "| `spec.name` | string |  | `^[a-z]+$` | Its name. |",
        "| `spec.resources` | ResourceRequirements |  |  | What it may use. |",
        "| `status.observedGeneration` | integer |  |  | The generation that this status describes. |",
        f"| `status.conditions` | list of Conditions |  |  | {Status.model_fields['conditions'].description} |",
    ]


def test_each_setting_is_a_flag_of_a_command() -> None:
    """The page names at least one."""
    page = (ROOT / "docs/reference/settings.md").read_text()
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| `--")]
    assert [row[1].strip() for row in rows if not row[-2].strip()] == []


def test_settings_are_listed_as_flag_and_variable() -> None:
    """Each has the commands that use it."""
    rows = settings({"listen": ["run", "webhook"]}).splitlines()
    assert (
        "| `--listen` | `GATEWRIGHT_LISTEN` | `:9443` | address the webhook listens on, with TLS | run, webhook |"
    ) in rows
    assert len([row for row in rows if row.startswith("| `--")]) == len(Settings.model_fields)


def test_metrics_are_listed_under_their_exposed_names() -> None:
    """A counter ends in _total."""
    registry = CollectorRegistry()
    Counter("gears_turned", "Turns.", ["gear"], registry=registry)
    assert (
        metrics({"Gears": registry}).splitlines()[-1]
        == "| `gears_turned_total` | counter | `gear` | Turns. |"
    )


@cache
def sampled_kinds() -> set[str]:
    """Return the kinds of all samples."""
    files = (ROOT / "config/samples").glob("*.yaml")
    return {each.value["kind"] for file in files for each in read_documents(file)}


@pytest.mark.parametrize("kind", own_kinds(), ids=lambda kind: kind.name)
def test_every_kind_has_a_page_and_a_sample(kind) -> None:
    """The list of kinds links to the page."""
    assert (ROOT / f"docs/kinds/{kind.name}.md").read_text().startswith(f"# {kind.resource.kind}\n")
    assert kind.resource.kind in sampled_kinds()


@pytest.mark.parametrize("kind", own_kinds(), ids=lambda kind: kind.name)
def test_every_field_is_on_the_page_of_its_kind(kind) -> None:
    """The page names each field of the spec as code, with or without `spec.` before it."""
    page = (ROOT / f"docs/kinds/{kind.name}.md").read_text()
    code = re.findall(r"`(?:spec)?\.?(\w+)[^`\n]*`", page)
    fields = {
        field.alias or name
        for name, field in kind.type.model_fields["spec"].annotation.model_fields.items()
    }
    assert fields - {*code} == set(), f"add a row for each of these to docs/kinds/{kind.name}.md"
