"""The table of other tools' policies names existing built-in policies and parameters."""

import re

import pytest
import yaml

from config.documents import parse_documents
from config.faults import parse
from tests.config.regenerate import ROOT
from webhook import review
from webhook.engine import Engine
from webhook.harness.bases import smallest
from webhook.harness.reviews import Admission
from webhook.harness.reviews import review as encode
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import load

PAGE = (ROOT / "docs/policies-from-elsewhere.md").read_text()
FOLDERS = {
    name: text for name, _, text in (each.partition("\n") for each in PAGE.split("\n## ")[1:])
}
ROWS = [
    (f"{folder}/{cells[0]}", cells[1])
    for folder, text in FOLDERS.items()
    for cells in (
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in text.splitlines()
        if line[:1] == "|"
    )
    if cells[0] not in ("Other library", "---")
]
OURS = re.compile(r"`([a-z-]+)`(?: `(\{.*?\})`)?")
MAKES_OBJECTS = {"add-network-policy", "add-networkpolicy-dns", "add-ns-quota", "add-rolebinding"}


def test_every_folder_is_complete():
    """Each folder of the page has a row for each policy of the original."""
    assert {
        folder: sum(where.startswith(f"{folder}/") for where, _ in ROWS) for folder in FOLDERS
    } == {
        "gatekeeper-library: general": 30,
        "gatekeeper-library: pod-security-policy": 19,
        "kyverno/policies: best-practices": 21,
        "kyverno/policies: pod-security": 24,
    }
    assert len({where for where, _ in ROWS}) == len(ROWS)


def test_the_named_policies_exist_and_accept_the_parameters():
    """Each policy is in the catalogue and accepts the parameters; only policies that create objects have none."""
    assert {where.rpartition("/")[2] for where, ours in ROWS if ours == "none"} == MAKES_OBJECTS
    for where, ours in ROWS:
        named = OURS.findall(ours)
        written = ", ".join(f"`{name}`{f' `{params}`' if params else ''}" for name, params in named)
        assert (where, written or "none") == (where, ours)
        for name, params in named:
            parse(catalogue()[name].params, yaml.safe_load(params or "{}"), noun="parameter")


@pytest.mark.parametrize("directory", ["/run", "/var/run"])
@pytest.mark.parametrize(
    "socket", ["docker.sock", "cri-dockerd.sock", "containerd/containerd.sock", "crio/crio.sock"]
)
def test_sockets_of_container_runtimes_are_denied_by_either_path(directory, socket):
    """The row about sockets denies both spellings of the path."""
    row = dict(ROWS)["kyverno/policies: best-practices/disallow-cri-sock-mount"]
    params = yaml.safe_load(OURS.findall(row)[0][1])
    policy = {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": "sockets"},
        "spec": {"policy": "host-path-volumes", "params": params},
    }
    engine = Engine(load(parse_documents(yaml.safe_dump(policy).encode(), "page"), catalogue()))
    pod = smallest("Pod")
    pod["spec"]["volumes"] = [{"name": "socket", "hostPath": {"path": f"{directory}/{socket}"}}]
    assert not engine.validate(review.read(encode(Admission(pod, namespace="default")))).allowed
