"""docs/ci.md, the GitHub Action and the pre-commit hooks: their examples work."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from gatewright.checks.project_file import KEYS
from gatewright.cli import main
from tests.gatewright.started import COMMAND

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ci.md").read_text()
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
SHOP = (ROOT / "docs" / "shop.yaml").read_text()


def blocks(language):
    """Return the code blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_shows_what_check_prints(capsys, monkeypatch):
    """The page has its first command with the whole output."""
    monkeypatch.chdir(ROOT)
    command, _, output = blocks("console")[0].removeprefix("$ ").partition("\n")
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(command)[1:])
    assert (ended.value.code, capsys.readouterr().out) == (1, output)


def test_every_option_of_the_page_exists(capsys):
    """The help of `check` lists it, and every output format."""
    with pytest.raises(SystemExit):
        main(["check", "--help"])
    help = capsys.readouterr().out
    options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE)) - {"--help"}
    assert [each for each in options if each not in help] == []
    formats = re.findall(r"^\| `([a-z]+)` \| ", PAGE, re.MULTILINE)
    assert ", ".join(formats) in " ".join(help.split())


def test_the_examples_use_existing_names():
    """The keys of the project file, the inputs of the Action and the ids of the hooks exist."""
    project, workflow, _, hooks = map(yaml.safe_load, blocks("yaml"))
    assert project.keys() <= KEYS.keys()
    (inputs,) = [
        step["with"]
        for step in workflow["jobs"]["policies"]["steps"]
        if "gatewright@" in step["uses"]
    ]
    assert inputs.keys() <= ACTION["inputs"].keys()
    assert {each["id"] for each in hooks["repos"][0]["hooks"]} <= {each["id"] for each in HOOKS}


@pytest.mark.long
@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_runs(hook, tmp_path):
    """It runs as pre-commit calls it: entry, args, then files; files without objects are no failure."""
    (tmp_path / "values.yaml").write_text("a: 1\n")
    (tmp_path / "shop.yaml").write_text(SHOP)
    command = [
        COMMAND,
        *shlex.split(hook["entry"])[1:],
        "--policies",
        ROOT / "config/policies/production.yaml",
    ]
    given = {"cwd": tmp_path, "capture_output": True}
    assert (
        subprocess.run(
            [*command, "-n", "production", "shop.yaml", "values.yaml"], **given
        ).returncode
        == 1
    )
    assert subprocess.run([*command, "values.yaml"], **given).returncode == 0


@pytest.fixture
def step(tmp_path):
    """Run the Action's check in a directory with a manifest, by the installed command; return exit code and stdout."""
    (tmp_path / "gatewright/bin").mkdir(parents=True)
    (tmp_path / "gatewright/bin/gatewright").symlink_to(COMMAND)
    (tmp_path / "apps").mkdir()
    (tmp_path / "apps/shop.yaml").write_text(SHOP)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/production.yaml").symlink_to(ROOT / "config/policies/production.yaml")
    (check,) = [each for each in ACTION["runs"]["steps"] if each.get("id") == "check"]

    def run(**inputs):
        values = {name: each.get("default", "") for name, each in ACTION["inputs"].items()} | inputs
        environment = {
            name: values[text[len("${{ inputs.") : -len(" }}")]]
            for name, text in check["env"].items()
        }
        files = {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", check["run"]],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "RUNNER_TEMP": str(tmp_path), **files, **environment},
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout

    return run


@pytest.mark.long
def test_the_action_annotates_and_writes_reports(step, tmp_path):
    """It writes annotations, job summary, SARIF and HTML; the exit code is an output and the step's result."""
    code, out = step(
        policies="policies/",
        manifests="apps/*.yaml",
        namespace="production",
        sarif="out.sarif",
        html="report.html",
    )
    assert code == 1
    assert out.startswith("::error file=apps/shop.yaml,line=19,title=image-registries::")
    assert (tmp_path / "GITHUB_OUTPUT").read_text() == "exit-code=1\n"
    assert (
        (tmp_path / "GITHUB_STEP_SUMMARY").read_text().startswith("### Gatewright check: failed\n")
    )
    assert len(json.loads((tmp_path / "out.sarif").read_text())["runs"][0]["results"]) == 3
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


@pytest.mark.long
def test_the_action_takes_labels_and_a_threshold(step):
    """Lists are separated by whitespace, and inputs are never executed."""
    labels = {
        "policies": "policies/ missing.yaml",
        "manifests": "apps",
        "fail-on": "never",
    }
    assert step(**labels, **{"namespace-labels": "lab= default=environment=production"})[0] == 3
    labels["policies"] = "policies/"
    assert step(**labels, **{"namespace-labels": "lab= default=environment=production"})[0] == 0
    assert step(**labels | {"manifests": "$(touch pwned) `touch pwned`"})[0] == 3


@pytest.mark.long
def test_the_action_judges_changed_files_by_a_preset(step, tmp_path):
    """A preset is named without a path; a file of the revision is not judged."""
    git = ("git", "-c", "user.name=shop", "-c", "user.email=shop@example.com")
    for command in (("init", "-q"), ("add", "apps"), ("commit", "-qm", "shop")):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    host = SHOP.replace("      containers:", "      hostNetwork: true\n      containers:")
    (tmp_path / "apps/new.yaml").write_text(host)
    code, out = step(policies="baseline", manifests="apps", changed="HEAD")
    assert (code, re.findall("::error file=(.*?),.*::(.*?);", out)) == (
        1,
        [("apps/new.yaml", "spec.template.spec.hostNetwork: true")],
    )


@pytest.mark.long
def test_the_action_passes_options_for_charts(step, helm, tmp_path, monkeypatch):
    """Values files and single values are lists."""
    monkeypatch.setenv("PATH", f"{helm.parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "chart/templates").mkdir(parents=True)
    (tmp_path / "chart/Chart.yaml").write_text("apiVersion: v2\nname: shop\nversion: 1.0.0\n")
    (tmp_path / "chart/templates/a.yaml").write_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: {{ .Release.Name }}}\n"
        "spec:\n  replicas: {{ .Values.a }}{{ .Values.b }}{{ len .Release.Name }}{{ .Capabilities.KubeVersion.Minor }}\n"
        "  selector: {matchLabels: {app: a}}\n  template: {metadata: {labels: {app: a}}, spec: {containers: ["
        "{name: a, image: registry.company.com/a:1, resources: {limits: {cpu: 1, memory: 1Gi}}}]}}\n"
    )
    (tmp_path / "a.yaml").write_text("a: 1\n")
    options = {"values": "a.yaml", "set": "b=2 c=3", "kube-version": "1.32", "release-name": "blue"}
    code, out = step(policies="policies/", manifests="chart", namespace="production", **options)
    assert (code, out.partition(";")[0]) == (
        1,
        "::error file=chart/templates/a.yaml,line=5,title=replica-limits::spec.replicas: 12432",
    )


def test_scripts_contain_no_input_expression():
    """GitHub would expand it in the shell script: inputs are environment variables."""
    assert [each["name"] for each in ACTION["runs"]["steps"] if "${{" in each["run"]] == []
