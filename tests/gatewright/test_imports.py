"""Modules that a process must not import, because each costs megabytes and tenths of a second at startup."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, sys
heavy = "aiohttp aiohttp.web cryptography jinja2 jsonpatch kubernetes_asyncio pydantic webhook webhook.cel yaml".split()
found = {}
def after(what):
    found[what] = [name for name in heavy if name in sys.modules]
import gatewright.cli
after("the command line")
import gatewright.commands.controller
from controller.reconcilers import planned_kinds
kinds = [kind.type for kind in planned_kinds()]
after("the controller")
from config.api.webapp import WebApp
WebApp.model_validate({"spec": {"replicas": 1, "image": "nginx"}})
found["built"] = [kind.__name__ for kind in kinds if kind.__pydantic_complete__]
import gatewright.processes.registration
from webhook.policy_sets.catalogue import catalogue
catalogue()
after("with a webhook to register")
print(json.dumps(found))
"""
WEBHOOK = """
import sys
import gatewright.commands.webhook
import gatewright.processes.registries
from config.documents import parse_documents
from webhook.engine import Engine
from webhook.policy_sets.policy_set import load
from webhook.policy_sets.catalogue import catalogue
text = "apiVersion: gatewright.io/v1alpha1\\nkind: ClusterAdmissionPolicy\\nmetadata: {name: pins}\\n"
text += "spec: {policy: image-pins, params: {images: [ghcr.io]}}"
Engine(load(parse_documents(text.encode(), "p.yaml"), catalogue()))
print(*({"cryptography", "jinja2", "jsonpatch", "kubernetes_asyncio", "webhook.cel"} & sys.modules.keys()))
"""


@pytest.mark.long
def test_a_process_imports_only_what_it_needs():
    """A controller without a webhook to register judges nothing, signs nothing, and builds no types."""
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, check=True, timeout=60
    )
    assert json.loads(found.stdout) == {
        "the command line": [],
        "the controller": ["aiohttp", "pydantic"],
        "built": ["WebApp"],  # an object of which was read
        "with a webhook to register": ["aiohttp", "cryptography", "pydantic", "webhook", "yaml"],
    }


@pytest.mark.long
def test_a_webhook_verifies_no_signature_and_compiles_no_expression():
    """Its certificate needs no X.509, pinned images no keys, and built-in policies no CEL."""
    found = subprocess.run(
        [sys.executable, "-c", WEBHOOK], stdout=subprocess.PIPE, check=True, timeout=60
    )
    assert found.stdout == b"\n"


NOT_BY_CHECK = (
    "aiohttp",
    "certs",
    "controller.audit",
    "controller.reconcilers.webapp",
    "cryptography",
    "gatewright.plans",
    "gatewright.processes.planners",
    "gatewright.outputs.html",
    "jinja2",
    "kube.client",
    "kubernetes_asyncio",
    "pathspec",
    "prometheus_client",
    "rich",
    "webhook.cel",
    "webhook.policies.probes",  # a policy that the set does not name
    "webhook.registries",
    "webhook.server",
)
CHECK = """
import contextlib, sys
from gatewright.cli import main
with contextlib.suppress(SystemExit):
    main(["check", "--policies", "policies.yaml", "pod.yaml", "-o", "json=report.json"])
from config.crds import kinds
print(*({not_imported} & sys.modules.keys()), *(each for each in kinds() if each.__pydantic_complete__))
"""


@pytest.mark.long
def test_a_check_of_a_file_imports_only_what_it_needs(tmp_path):
    """It imports no module for clusters, registries, planners, other policies or kinds that are not in the file."""
    (tmp_path / "policies.yaml").write_text(
        "{apiVersion: gatewright.io/v1alpha1, kind: ClusterAdmissionPolicy, metadata: {name: tags},"
        " spec: {policy: image-tags}}"
    )
    (tmp_path / "pod.yaml").write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: a:1}]}}"
    )
    found = subprocess.run(
        [sys.executable, "-c", CHECK.replace("{not_imported}", repr(set(NOT_BY_CHECK)))],
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert found.stdout.endswith(b"1 object: 1 allowed\n\n")
