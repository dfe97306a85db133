"""The table of policies from elsewhere names policies that exist, with parameters that they take."""

import re

import pytest
import yaml

from config.faults import parse
from tests.config.regenerate import ROOT
from webhook.policies import catalogue

PAGE = (ROOT / "docs/policies-from-elsewhere.md").read_text()
FOLDERS = {name: text for name, _, text in (each.partition("\n") for each in PAGE.split("\n## ")[1:])}
ROWS = [
    (f"{folder}/{cells[0]}", cells[1])
    for folder, text in FOLDERS.items()
    for cells in (
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line[:1] == "|"
    )
    if cells[0] not in ("There", "---")
]
OURS = re.compile(r"`([a-z-]+)`(?: `(\{.*?\})`)?")
MAKES_OBJECTS = {"add-network-policy", "add-networkpolicy-dns", "add-ns-quota", "add-rolebinding"}


def test_every_folder_is_told_whole():
    """As many policies as each of the four folders holds."""
    assert {folder: sum(where.startswith(f"{folder}/") for where, _ in ROWS) for folder in FOLDERS} == {
        "gatekeeper-library: general": 30,
        "gatekeeper-library: pod-security-policy": 19,
        "kyverno/policies: best-practices": 21,
        "kyverno/policies: pod-security": 24,
    }
    assert len({where for where, _ in ROWS}) == len(ROWS)


@pytest.mark.parametrize(("where", "ours"), ROWS)
def test_ours_exist_and_take_the_parameters(where: str, ours: str):
    """Each policy is in the catalogue, and what stands behind it can be used; only makers of objects have none."""
    named = OURS.findall(ours)
    assert (ours == "none") == (where.rpartition("/")[2] in MAKES_OBJECTS)
    assert ", ".join(f"`{name}`{f' `{params}`' if params else ''}" for name, params in named) == ours.replace(
        "none", ""
    )
    for name, params in named:
        parse(catalogue()[name].params, yaml.safe_load(params or "{}"), noun="parameter")
