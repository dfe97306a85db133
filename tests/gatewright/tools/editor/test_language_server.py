"""The language server, as an editor uses it."""

import asyncio
import json
import os
import subprocess
import sys
from functools import partial

import pytest

from gatewright.cli import main

pytest.importorskip("pygls")

from lsprotocol import types as lsp

from tests.gatewright.started import COMMAND
from tests.gatewright.tools.editor.editors import applied, editor

pytestmark = pytest.mark.long  # each starts a server, which takes a second

SHOP = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 11
  template:
    spec:
      containers: [{name: "\N{GRINNING FACE}", image: registry.company.com/shop:1, resources: {limits: {cpu: 1, memory: 1Gi}}}]
"""
REPLICAS = (
    "spec.replicas: 11; production workloads cannot exceed 10 replicas. Set it to 10 or less."
)
POLICY = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: mine}
spec:
  match: {any: [{kinds: [Deployment]}]}
  validations: [{expression: "object.spec.replicas < 2 && objec.x", message: few}]
"""
GADGETS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.org}
spec:
  group: example.org
  names: {kind: Gadget, plural: gadgets}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties: {spec: {type: object, properties: {%s: {type: integer}}}}
"""
ABOUT_GADGETS = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: gadgets}
spec:
  match: {any: [{kinds: [example.org/v1/Gadget]}]}
  validations: [{expression: object.spec.sice < 2, message: few}]
"""
FEW = "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {name: few}\nspec: {policy: replica-limits, params: {maximum: 4}}\n"
PRODUCTION = {"policies": ["production"], "namespace": "production"}


def brief(diagnostics):
    """Return place and message of each diagnostic."""
    places = [(each.range.start, each.range.end, each.message) for each in diagnostics]
    return [(begin.line, begin.character, end.character, message) for begin, end, message in places]


async def test_violations_are_shown_while_one_types(tmp_path):
    """They use the editor's policies and namespace, and extend from the field to the end of its line."""
    async with editor(tmp_path, **PRODUCTION) as desk:
        (shown,) = await desk.open("shop.yaml", SHOP)
        assert brief([shown]) == [(4, 2, 14, REPLICAS)]
        assert (shown.severity, shown.code, shown.source) == (1, "replica-limits", "gatewright")
        assert await desk.change("shop.yaml", 2, SHOP.replace("11", "3")) == []


async def test_the_command_line_has_policies_too(tmp_path):
    """The editor's options replace them."""
    options = ("--policies", "production", "-n", "production", "--namespace-labels", "shop=")
    async with editor(tmp_path, *options) as desk:
        assert brief(await desk.open("shop.yaml", SHOP)) == [(4, 2, 14, REPLICAS)]
    async with editor(tmp_path, *options, namespace="shop") as desk:
        assert await desk.open("shop.yaml", SHOP) == []


async def test_half_typed_yaml_keeps_what_was_shown(tmp_path):
    """The diagnostic has the parser's error; other documents are judged."""
    both = SHOP + "---\n" + SHOP.replace("11", "12")
    async with editor(tmp_path, **PRODUCTION) as desk:
        before = brief(await desk.open("shop.yaml", both))
        assert [line for line, *_ in before] == [4, 13]
        half = both.replace("metadata: {name: shop}", "metadata: {name: shop", 1).replace("12", "3")
        after = brief(await desk.change("shop.yaml", 2, half))
        problem = "not YAML: expected ',' or '}', but got ':'"
        assert after == [(3, 0, 5, problem), before[0]]


async def test_only_the_newest_text_is_judged(tmp_path):
    """Of several changes within a moment, only the last text is judged."""
    async with editor(tmp_path, **PRODUCTION) as desk:
        await desk.open("shop.yaml", SHOP)
        for version in range(2, 20):
            desk.send("shop.yaml", version, SHOP.replace("11", f"{version + 10}"))
        (shown,) = await desk.of_version(19)
        assert shown.message.startswith("spec.replicas: 29; ")


async def test_quick_fixes_are_those_of_check(tmp_path):
    """Safe fixes are preferred; unsafe ones are marked; one action makes all safe fixes."""
    privileged = SHOP.replace("image:", "securityContext: {privileged: true}, image:")
    options = ("--policies", "production", "--policies", "baseline", "--namespace", "production")
    async with editor(tmp_path, *options) as desk:
        await desk.open("shop.yaml", privileged)
        fix, all_safe = await desk.actions("shop.yaml", 4)
        assert (fix.title, fix.kind, fix.is_preferred) == ("Fix replica-limits", "quickfix", True)
        assert applied(privileged, fix) == privileged.replace("11", "10")
        assert (all_safe.title, all_safe.kind) == (
            "Fix all violations that are safe to fix",
            "source.fixAll.gatewright",
        )
        assert applied(privileged, all_safe) == privileged.replace("11", "10")
        (unsafe,) = await desk.actions("shop.yaml", 7, ["quickfix"])
        assert (unsafe.title, unsafe.is_preferred) == (
            "Fix baseline/privileged-containers (unsafe: it may stop an application)",
            False,
        )
        assert applied(privileged, unsafe) == SHOP


async def test_a_hover_has_the_violation_and_its_policy(tmp_path):
    """The hover has the violation and the page of its policy."""
    async with editor(tmp_path, **PRODUCTION) as desk:
        await desk.open("shop.yaml", SHOP)
        text = await desk.hover("shop.yaml", 4, 4)
        assert text.startswith(f"**replica-limits**: {REPLICAS}\n\nWorkloads have at most ")
        assert "\n\n**Why:** a typo in a number should not fill all nodes.\n\n" in text
        assert await desk.hover("shop.yaml", 0) == ""


async def test_a_name_is_no_image_or_link_in_a_hover(tmp_path):
    """An editor would load the image."""
    async with editor(tmp_path, policies=["baseline"]) as desk:
        (shown,) = await desk.open("a.yaml", POD_WITH_LINK)
        assert "](https://evil.example/a.png)" in shown.message
        begin = shown.range.start
        text = await desk.hover("a.yaml", begin.line, begin.character)
        assert "evil.example" in text
        assert "](https" not in text


POD_WITH_LINK = """\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
  - name: "![a](https://evil.example/a.png)"
    image: a
    securityContext: {privileged: true}
"""


async def test_policy_sets_are_completed_and_explained(tmp_path):
    """Completion follows the schema, with the parameters of the named policy."""
    text = "kind: ClusterAdmissionPolicy\nspec:\n  policy: replica-limits\n  params:\n    m\n"
    async with editor(tmp_path) as desk:
        await desk.open("policies.yaml", text)
        items = await desk.complete("policies.yaml", 4, 5)
        assert [each.label for each in items] == ["maximum", "minimum", "allow_zero", "tier"]
        assert items[0].documentation == "maximum number of replicas"
        assert items[0].insert_text == "maximum: "
        assert "run-as-non-root" in [
            item.label for item in await desk.complete("policies.yaml", 2, 10)
        ]
        assert await desk.hover("policies.yaml", 2) == (
            "**replica-limits**: Workloads have at most the allowed number of replicas."
        )


async def test_errors_in_expressions_are_at_their_column(tmp_path):
    """The policies that are always in force judge policy sets."""
    async with editor(tmp_path) as desk:
        ((line, column, _, message),) = brief(await desk.open("policies.yaml", POLICY))
        assert (line, column) == (5, POLICY.splitlines()[5].index("objec.x"))
        assert message.startswith(
            "spec.validations[0].expression: line 1, column 29: undeclared reference to 'objec'; did you mean \"object\"?"
        )


async def test_case_files_are_checked_by_their_schema(tmp_path):
    """A misspelt field is reported with a suggestion."""
    text = "policy: replica-limits\ncases:\n  - name: few\n    objct: {}\n    expect: allowed\n"
    async with editor(tmp_path) as desk:
        shown = brief(await desk.open("cases.yaml", text))
        assert shown == [(3, 4, 13, 'cases[0].objct: unknown field; did you mean "object"?')]


LOOKS_AROUND = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: hosts}
spec: {policy: unique-ingress-hosts}
---
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: few}
spec: {policy: replica-limits, match: {any: [{namespaceSelector: {matchLabels: {tier: gold}}}]}}
"""
INGRESS = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: NAME}\nspec: {rules: [{host: HOST}]}\n"
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {tier: gold}}\n"


async def test_a_document_is_judged_again_when_its_dependencies_change(tmp_path):
    """Labels of namespaces and looked-up objects come from the current text."""
    (tmp_path / "policies.yaml").write_text(LOOKS_AROUND)
    one, other = (INGRESS.replace("NAME", name).replace("HOST", "a.example") for name in "ab")
    text = "---\n".join([NAMESPACE, SHOP, one, other])
    async with editor(tmp_path, policies=["policies.yaml"]) as desk:
        shown = await desk.open("shop.yaml", text)
        assert [(each.range.start.line, each.code) for each in shown] == [
            (8, "few"),
            (16, "hosts"),
            (21, "hosts"),
        ]
        apart = text[::-1].replace("a.example"[::-1], "b.example"[::-1], 1)[::-1]
        shown = await desk.change("shop.yaml", 2, apart)
        assert [(each.range.start.line, each.code) for each in shown] == [(8, "few")]
        assert await desk.change("shop.yaml", 3, apart.replace("gold", "tin")) == []


async def test_changed_policies_are_in_force_once_they_are_saved(tmp_path):
    """If they are invalid, the previous ones stay in force, and a message has the reason."""
    policies = tmp_path / "policies.yaml"
    policies.write_text(FEW)
    async with editor(tmp_path, policies=["policies.yaml"]) as desk:
        (shown,) = await desk.open("shop.yaml", SHOP)
        assert "cannot exceed 4 replicas" in shown.message
        saved = lsp.DidSaveTextDocumentParams(lsp.TextDocumentIdentifier(policies.as_uri()))
        policies.write_text(FEW.replace("4", "20"))
        desk.client.text_document_did_save(saved)
        assert await desk.of_version(1) == []
        policies.write_text(FEW.replace("maximum", "maximun"))
        desk.client.text_document_did_save(saved)
        assert await desk.messages.get() == (
            f"Gatewright: the previous policies stay in force: {policies}:4: ClusterAdmissionPolicy few: "
            'spec.params.maximun: unknown parameter; did you mean "maximum"?'
        )
        assert await desk.of_version(1) == []


async def test_custom_kinds_are_those_that_other_files_define(tmp_path):
    """Those on disk, and those of open texts that are not saved; in the words of `check`."""
    definition = tmp_path / "crds" / "gadgets.yaml"
    definition.parent.mkdir()
    definition.write_text(GADGETS % "size")
    (tmp_path / "policy.yaml").write_text(ABOUT_GADGETS)
    async with editor(tmp_path, policies=["baseline"]) as desk:
        (shown,) = await desk.open("policy.yaml", ABOUT_GADGETS)
        assert "undefined field 'sice' of 'spec'; did you mean \"size\"?" in shown.message
        check = [COMMAND, "check", "--policies", "baseline", "-o", "json", "policy.yaml", "crds"]
        run = partial(subprocess.run, check, cwd=tmp_path, capture_output=True, check=False)
        done = await asyncio.to_thread(run)
        (result,) = [each for each in json.loads(done.stdout)["results"] if each["violations"]]
        assert shown.message == result["violations"][0]["message"]
        await desk.open("crds/gadgets.yaml", GADGETS % "sice")
        assert await desk.of_version(1) == []


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"polices": ["baseline"]}, "unknown: polices; known: policies, namespace"),
        ({"policies": "baseline"}, "policies: must be a list"),
        (
            {"policies": ["basline"]},
            'basline: no such file or directory, and no preset; did you mean "baseline"?',
        ),
    ],
)
async def test_wrong_options_are_a_message(tmp_path, options, problem):
    """The server continues with the options of the command line."""
    async with editor(tmp_path, **options) as desk:
        assert await desk.messages.get() == f"Gatewright: initializationOptions: {problem}"


async def test_unusable_policies_are_a_message_once(tmp_path):
    """It is not repeated at each key; nothing is in force."""
    async with editor(tmp_path, policies=["./nothing.yaml"]) as desk:
        assert await desk.open("shop.yaml", SHOP) == []
        assert await desk.messages.get() == (
            f"Gatewright: the previous policies stay in force: {tmp_path}/nothing.yaml: No such file or directory"
        )
        assert await desk.change("shop.yaml", 2, SHOP.replace("11", "12")) == []
        assert desk.messages.empty()


async def test_a_closed_text_shows_nothing(tmp_path):
    """Its violations are taken from the editor's list."""
    async with editor(tmp_path, **PRODUCTION) as desk:
        await desk.open("shop.yaml", SHOP)
        where = lsp.TextDocumentIdentifier(desk.uri("shop.yaml"))
        desk.client.text_document_did_close(lsp.DidCloseTextDocumentParams(where))
        assert list((await desk.shown.get()).diagnostics) == []


def test_it_ends_when_its_input_is_closed():
    """An editor that died closes it."""
    command = [str(COMMAND), "lsp"]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=30)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


EDITOR = """
import subprocess, sys, time
server = subprocess.Popen([sys.argv[1], "lsp"], stdin=int(sys.argv[2]), stdout=sys.stderr)
print(server.pid, flush=True)
time.sleep(60)
"""


async def test_it_ends_with_its_editor(tmp_path):
    """It ends even if another process keeps its input open."""
    end, start = os.pipe()
    editor_process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", EDITOR, str(COMMAND), str(end)),
        pass_fds=[end],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert editor_process.stdout is not None
    assert editor_process.stderr is not None
    await editor_process.stdout.readline()
    params = {"processId": editor_process.pid, "rootUri": None, "capabilities": {}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    os.write(start, f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
    await editor_process.stderr.readuntil(b"gatewright")  # its answer
    editor_process.kill()
    await asyncio.wait_for(editor_process.stderr.read(), 30)  # until the server has closed it, too
    os.close(start)
    os.close(end)


def test_a_missing_extra_is_one_line(monkeypatch, capsys):
    """It names the command that installs it."""
    monkeypatch.setitem(sys.modules, "lsprotocol", None)
    monkeypatch.delitem(sys.modules, "gatewright.tools.editor.language_server", raising=False)
    with pytest.raises(SystemExit) as ended:
        main(["lsp"])
    assert ended.value.code == 1
    assert capsys.readouterr().err == (
        "Error: lsprotocol is not installed; gatewright lsp needs pip install 'gatewright[lsp]'\n"
    )
