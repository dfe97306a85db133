"""Each command judges, excludes by a rule, or names whatever is below the paths that it is given."""

import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.checks import inventory
from gatewright.cli import main

TREES = int(os.environ.get("TREES", "2"))  # examples of a test that starts programs
RULES = (".hidden.yaml", "ignored.yaml")
DENY = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: marks}
spec:
  match: {any: [{kinds: [ConfigMap]}]}
  validations:
  - {expression: "false", messageExpression: "'marks: ' + object.data.map(k, object.data[k]).join(' ')"}
"""
ALLOW = DENY.replace('"false"', '"true"')
EXCEPTION = """\
---
apiVersion: gatewright.io/v1alpha1
kind: PolicyException
metadata: {{name: of-{0}, namespace: gatewright-system}}
spec: {{reason: a, expires: "2100-01-01T00:00:00Z", exceptions: [{{policy: marks, names: ["{0}"]}}]}}
"""
Value = dict[str, object]


def config_map(name: str, mark: str) -> Value:
    """Return an object that the policies deny with its data as message."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"of": mark},
    }


def widget(name: str, mark: str) -> Value:
    """Return an object with children of its name."""
    metadata = {"name": name, "annotations": {"of": mark}}
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": metadata,
        "spec": {"replicas": 2},
    }


def configuration(name: str, mark: str) -> Value:
    """Return a webhook configuration."""
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    webhook = {
        "name": f"{name}.example.com",
        "rules": [rule],
        "clientConfig": {"url": "https://example.com"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name, "annotations": {"of": mark}},
        "webhooks": [webhook],
    }


def kyverno(name: str, mark: str) -> Value:
    """Return a policy of Kyverno."""
    pattern = {"metadata": {"labels": {"team": "?*"}}}
    rule = {
        "name": "labels",
        "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
        "validate": {"message": mark, "pattern": pattern},
    }
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": name},
        "spec": {"validationFailureAction": "Enforce", "rules": [rule]},
    }


def cases(name: str, mark: str) -> Value:
    """Return a case file."""
    return {
        "policy": "host-namespaces",
        "cases": [{"name": f"{name} {mark}", "each": "pods", "expect": "allowed"}],
    }


def half(name: str, mark: str) -> Value:
    """Return an object without an apiVersion."""
    return {"kind": "ConfigMap", "spec": {"of": f"{name} {mark}"}}


Form = Callable[[Value], bytes]


def block(value: Value) -> bytes:
    """Return YAML in block style."""
    return yaml.safe_dump(value).encode()


def flow(value: Value) -> bytes:
    """Return JSON."""
    return json.dumps(value).encode()


def packed(value: Value) -> bytes:
    """Return a packaged chart."""
    archive = io.BytesIO()
    about = {"apiVersion": "v2", "name": "packed", "version": "1.0.0"}
    with tarfile.open(fileobj=archive, mode="w:gz") as files:
        for name, text in (("Chart.yaml", flow(about)), ("templates/one.yaml", flow(value))):
            entry = tarfile.TarInfo(f"packed/{name}")
            entry.size = len(text)
            files.addfile(entry, io.BytesIO(text))
    return archive.getvalue()


FORMS: dict[str, Form] = {
    "one.yaml": block,
    "flow.yml": flow,
    "capitals.YAML": flow,
    "json.json": flow,
    "mark.yaml": lambda value: b"\xef\xbb\xbf" + flow(value),
    "wide.yaml": lambda value: block(value).decode().encode("utf-16"),
    "list.yaml": lambda value: flow({"apiVersion": "v1", "kind": "List", "items": [value]}),
    "lines.yaml": lambda value: block(value).replace(b"\n", b"\r\n"),
    "second.yaml": lambda value: b"# nothing\n---\n---\n" + block(value),
    "broken.yaml": lambda value: b"of: [" + flow(value) + b" b\n",
    "values.yaml": lambda value: flow({"of": value}),
    "half.yaml": lambda value: flow(half("", str(value))),
    "between.yaml": lambda value: b"of: [\n---\n" + block(value) + b"---\nof: {\n",
    "last.yaml": lambda value: b"of: 1\nof: 2\n---\n" + flow(value) + b"\n",
    "stream.json": lambda value: b'{}{}{"of": 1, "of": 2}' + flow(value),
    ".hidden.yaml": flow,
    "ignored.yaml": flow,
    "notes.txt": flow,
}
# Unusable documents beside the object: they are named, and hide nothing.
BESIDE = {"between.yaml": 2, "last.yaml": 1, "stream.json": 1}
WHOLE = {*FORMS} - {"broken.yaml", "values.yaml", "half.yaml", "notes.txt", *RULES}


@dataclass
class Tree:
    """Files with an object each; `expected` are those that a user expects to be judged."""

    top: Path
    shape: Callable[[str, str], Value]
    files: dict[str, str] = field(default_factory=dict)
    expected: set[str] = field(default_factory=set)

    def write(self, path: Path, form: Form, *, is_expected: bool = False) -> str:
        """Write a file; return the name of its object, which is in the file's mark."""
        name = f"n{len(self.files)}n"
        mark = f"mark-{name}-mark"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(form(self.shape(name, mark)))
        self.files[name] = str(path.relative_to(self.top))
        if is_expected:
            self.expected.add(name)
        return name

    def kustomization(self, directory: Path, *included: str, is_component: bool = False) -> None:
        """Write a kustomization with an object and a patch of it."""
        name = self.write(directory / "listed.yaml", block, is_expected=not is_component)
        about = self.shape(name, "")
        patch = {key: about[key] for key in ("apiVersion", "kind") if key in about}
        patch["metadata"] = {"name": name, "labels": {"patched": "true"}}
        (directory / "patch.yaml").write_bytes(flow(patch))
        text: Value = {"resources": ["listed.yaml", *included], "patches": [{"path": "patch.yaml"}]}
        if is_component:
            text |= {"kind": "Component", "apiVersion": "kustomize.config.k8s.io/v1alpha1"}
        (directory / "kustomization.yaml").write_bytes(flow(text))

    def chart(self, directory: Path, *, is_library: bool = False, part: bool = False) -> None:
        """Write a chart, with a chart in it or without."""
        directory.mkdir(parents=True, exist_ok=True)
        about = {"apiVersion": "v2", "name": directory.name, "version": "1.0.0"}
        (directory / "Chart.yaml").write_bytes(
            flow(about | {"type": "library"} if is_library else about)
        )
        template = "templates/_part.yaml" if is_library else "templates/one.yaml"
        self.write(directory / template, block, is_expected=not is_library)
        self.write(directory / "ci/plain.yaml", block)
        if part:
            self.chart(directory / "charts/part")


@st.composite
def plans(draw):
    """Draw the forms of plain files, the parts of a tree, and the files that do not change."""
    forms = draw(st.lists(st.sampled_from([*FORMS]), max_size=8, unique=True))
    parts = ["nested", "component", "own", "chart", "library", "link", "packed"]
    names = draw(st.sets(st.integers(0, 20)))
    return forms, draw(st.lists(st.sampled_from(parts), unique=True)), names


def write(top, plan, shape):
    """Write a tree."""
    forms, parts, _ = plan
    top.mkdir()
    (top / ".gatewrightignore").write_text("ignored.yaml\n")
    tree = Tree(top, shape)
    for form in forms:
        tree.write(top / "plain" / form, FORMS[form], is_expected=form in WHOLE)
    if "nested" in parts:
        tree.kustomization(top / "apps/base")
        tree.kustomization(top / "apps/root", "../base")
        tree.write(top / "apps/root/beside.yaml", block, is_expected=True)
        tree.write(top / "apps/root/below/flow.yml", flow, is_expected=True)
    if "component" in parts:
        tree.kustomization(top / "apps/component", is_component=True)
    if "own" in parts:
        tree.kustomization(top / "apps/root/own")
    if "chart" in parts:
        tree.chart(top / "chart", part=True)
    if "library" in parts:
        tree.chart(top / "library", is_library=True)
    if "packed" in parts:
        tree.write(top / "plain/packed-1.0.0.tgz", packed)
    if "link" in parts:
        elsewhere = Path(tempfile.mkdtemp(dir=top.parent))
        (elsewhere / "a.yaml").write_bytes(flow(shape("elsewhere", "elsewhere")))
        (top / "to-a-directory").symlink_to(elsewhere)
        (top / "to-a-file.yaml").symlink_to(elsewhere / "a.yaml")
        (top / "to-nothing.yaml").symlink_to(elsewhere / "b.yaml")
    return tree


def hold(tree, code, text, judged, *, ignores=True, files=None):
    """Hold the account of a command that printed `text`, and judged the objects with these names."""
    rules = (*RULES, "notes.txt") if ignores else (RULES[0], "notes.txt", "packed-1.0.0.tgz")
    account = {
        name: "judged"
        if name in judged
        else "ignored"
        if Path(file).name in rules
        else "named"
        if is_named(tree, file, text)
        else "lost"
        for name, file in tree.files.items()
        if files is None or file in files
    }
    for name, file in tree.files.items():
        if (count := BESIDE.get(Path(file).name, 0)) and (files is None or file in files):
            assert (account[name], code) == ("judged", 3), (file, text)
            assert len(re.findall(rf"{re.escape(file)}:\d+: (?:not YAML|dup|not J)", text)) == count
    lost = {tree.files[name]: each for name, each in account.items() if each == "lost"}
    assert not lost, (lost, text)
    named = {name for name, each in account.items() if each == "named"}
    assert code == 3 or not (named & tree.expected), (named, text)
    for link in ("to-a-directory", "to-a-file.yaml", "to-nothing.yaml") if files is None else ():
        assert not (tree.top / link).is_symlink() or link in text


def is_named(tree, file, text):
    """Whether the text has a file, or a directory that it is in."""
    places = [str(each) for each in (Path(file), *Path(file).parents) if str(each) != "."]
    return any(
        re.search(rf"(^|[\s/]){re.escape(place)}(?![\w./-])", text, re.MULTILINE)
        for place in places
    )


@pytest.fixture
def run(capsys):
    """Run the command line; return exit code, and both outputs as one text."""

    def _run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(each) for each in arguments])
        return ended.value.code, "\n".join(capsys.readouterr())

    return _run


def marks(text):
    """Return the names in the marks of a text."""
    return set(re.findall(r"mark-(n\d+n)-mark", text))


def names(text):
    """Return the names of objects in a text, without the marks."""
    return set(re.findall(r"\bn\d+n\b", text))


def check(tree, run):
    """Hold the account of `check`."""
    code, text = run("check", "--policies", "../deny.yaml", ".")
    hold(tree, code, text, marks(text))


def impact(tree, run):
    """Hold the account of `impact`, where each object becomes denied."""
    code, text = run("impact", "../allow.yaml", "../deny.yaml", ".")
    hold(tree, code, text, marks(text))


def exceptions(tree, run):
    """Hold the account of `exceptions`, with one for each object."""
    policies = tree.top.parent / "excepted.yaml"
    policies.write_text(DENY + "".join(map(EXCEPTION.format, tree.files)))
    code, text = run("exceptions", "--policies", policies, ".")
    hold(tree, code, text, set(re.findall(r"in use  PolicyException \S*of-(n\d+n)", text)))


def plan(tree, run):
    """Hold the account of `plan`."""
    code, text = run("plan", ".")
    hold(tree, code, text, names(re.sub(r"^\S+: .*", "", text, flags=re.MULTILINE)))


def doctor(tree, run):
    """Hold the account of `doctor`."""
    code, text = run("doctor", "-o", "json", ".")
    judged = {each["name"] for each in json.loads(text[: text.rindex("}") + 1])["results"]}
    hold(tree, code, text.replace("\\n", "\n"), judged)


def migrate(tree, run):
    """Hold the account of `migrate`."""
    output = tree.top.parent / "output"
    code, text = run("migrate", "--output", output, ".")
    written = "".join(
        file.read_text() for file in output.glob("*") if file.name != "not-converted.md"
    )
    hold(tree, code, text, names(written))


def run_cases(tree, run):
    """Hold the account of `test`."""
    code, text = run("test", "-v", ".")
    hold(tree, code, text, marks(text), ignores=False)


def hook(tree, run, unchanged=()):
    """Hold the account of a hook, which names files of any kind."""
    files = [file for file in tree.files.values() if hash_of(file) not in unchanged]
    if files:
        code, text = run("check", "--policies", "../deny.yaml", "--changed-files", *files)
        hold(tree, code, text, marks(text), files=files)


def hash_of(file):
    """Return a small number of a file, the same in each run."""
    return sum(file.encode()) % 20


COMMANDS = {
    "check": (config_map, check),
    "impact": (config_map, impact),
    "exceptions": (config_map, exceptions),
    "hook": (config_map, hook),
    "plan": (widget, plan),
    "doctor": (configuration, doctor),
    "migrate": (kyverno, migrate),
    "test": (cases, run_cases),
}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Write the policies; print all names of skipped files."""
    for name in [name for name in os.environ if name.startswith(("GATEWRIGHT_", "KUBECONFIG"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(inventory, "MAX_NAMES", 1000)


def tree_of(plan, shape, tmp_path, monkeypatch):
    """Write a tree below a directory of its own, and go there."""
    above = Path(tempfile.mkdtemp(dir=tmp_path))
    (above / "deny.yaml").write_text(DENY)
    (above / "allow.yaml").write_text(ALLOW)
    tree = write(above / "tree", plan, shape)
    monkeypatch.chdir(tree.top)
    return tree


EXAMPLES = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
@settings(EXAMPLES, max_examples=2 * TREES)
@given(plan=plans())
def test_every_file_is_accounted_for(tmp_path, monkeypatch, run, command, plan):
    """Without programs, what they would render is named; the rest is judged or named."""
    monkeypatch.setenv("PATH", "/nowhere")
    shape, hold_account = COMMANDS[command]
    hold_account(tree_of(plan, shape, tmp_path, monkeypatch), run)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
@pytest.mark.parametrize("command", COMMANDS)
@settings(EXAMPLES, max_examples=TREES)
@given(plan=plans())
def test_every_rendered_file_is_accounted_for(tmp_path, monkeypatch, run, helm, command, plan):
    """With helm and kubectl, charts and kustomizations are rendered."""
    monkeypatch.setenv("PATH", f"{helm.parent}:/usr/local/bin:/usr/bin:/bin")
    shape, hold_account = COMMANDS[command]
    hold_account(tree_of(plan, shape, tmp_path, monkeypatch), run)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@settings(EXAMPLES, max_examples=TREES)
@given(plan=plans())
def test_every_changed_file_is_accounted_for(tmp_path, monkeypatch, run, helm, plan):
    """Of some changed files, by a revision and by a hook; the others are context."""
    monkeypatch.setenv("PATH", f"{helm.parent}:/usr/local/bin:/usr/bin:/bin")
    tree = tree_of(plan, config_map, tmp_path, monkeypatch)
    changed = [file for file in tree.files.values() if hash_of(file) not in plan[2]]
    Path(".gitignore").write_text("".join(f"/{file}\n" for file in changed))
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *arguments], check=True)
    Path(".gitignore").write_text("")
    code, text = run("check", "--policies", "../deny.yaml", "--changed", "HEAD", ".")
    hold(tree, code, text, marks(text), files=changed)
    hook(tree, run, plan[2])
