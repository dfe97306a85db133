"""Modules that a process must not import, because each costs megabytes and tenths of a second at startup."""

import json
import subprocess
import sys

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
from webhook.policy_sets.catalogue import catalogue
catalogue()
print(*({"cryptography", "jinja2", "jsonpatch", "kubernetes_asyncio", "webhook.cel"} & sys.modules.keys()))
"""


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


def test_a_webhook_verifies_no_signature_and_compiles_no_expression():
    """Its certificate needs no X.509, and policies without rules of their own need no CEL."""
    found = subprocess.run(
        [sys.executable, "-c", WEBHOOK], stdout=subprocess.PIPE, check=True, timeout=60
    )
    assert found.stdout == b"\n"
