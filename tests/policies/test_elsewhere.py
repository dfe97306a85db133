"""The table of policies from elsewhere names policies that exist, with parameters that they take."""

import re

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


def test_ours_exist_and_take_the_parameters():
    """Each policy is in the catalogue, and what stands behind it can be used; only makers of objects have none."""
    assert {where.rpartition("/")[2] for where, ours in ROWS if ours == "none"} == MAKES_OBJECTS
    for where, ours in ROWS:
        named = OURS.findall(ours)
        written = ", ".join(f"`{name}`{f' `{params}`' if params else ''}" for name, params in named)
        assert (where, written or "none") == (where, ours)
        for name, params in named:
            parse(catalogue()[name].params, yaml.safe_load(params or "{}"), noun="parameter")
