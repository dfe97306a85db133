"""A project file has the options of `check`; it is hostile input, too."""

from pathlib import Path

import pytest

from gatewright.cli import main

PODS = """\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {hostPID: true, containers: [{name: a, image: a}]}
"""
POLICIES = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: namespaces-of-nodes}
spec: {policy: host-namespaces}
---
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: tags}
spec: {policy: image-tags}
"""


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    (tmp_path / "repository/apps").mkdir(parents=True)
    (tmp_path / "outside.yaml").write_text(POLICIES)
    monkeypatch.chdir(tmp_path / "repository")
    Path("apps/pod.yaml").write_text(PODS)
    Path("policies.yaml").write_text(POLICIES)


@pytest.fixture
def check(capsys):
    """Run `gatewright check`; return the exit code and both outputs."""

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["check", *arguments])
        return ended.value.code, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            ".gatewright.yaml",
            "{policies: [policies.yaml], manifests: [apps], namespace: shop, ignore: [tags], "
            "outputs: [table, json=out.json]}",
        ),
        (
            "pyproject.toml",
            '[tool.gatewright]\npolicies = ["policies.yaml"]\nmanifests = ["apps"]\n'
            'namespace = "shop"\nselect = ["namespaces-of-nodes"]\noutputs = ["table", "json=out.json"]',
        ),
    ],
)
def test_without_arguments_check_does_what_the_project_file_says(check, name, text):
    """The command line wins; a switch leaves the file out."""
    Path(name).write_text(text)
    code, out, err = check()
    assert (code, err, Path("out.json").exists()) == (1, "", True)
    assert out.splitlines() == [
        "denied  Pod shop/a  (apps/pod.yaml:1)",
        "  apps/pod.yaml:4: namespaces-of-nodes: spec.hostPID: true; pods must not use namespaces of the node. Remove it.",
        "1 object: 1 denied",
    ]
    assert "Pod other/a" in check("-n", "other")[1]
    assert check("--no-project-file")[0] == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("policies-dir: [modules]", "policies-dir: no key of a project file"),
        ("kubeconfig: a", "kubeconfig: no key of a project file"),
        ("polices: [production]", 'did you mean "policies"?'),
        ("policies: [../outside.yaml]", "../outside.yaml is outside of the work tree"),
        ("policies: [link.yaml]", "link.yaml is outside of the work tree"),
        ("manifests: [/etc]", "/etc is outside of the work tree"),
        ("values: [/proc/self/environ]", "/proc/self/environ is outside of the work tree"),
        ("outputs: [json=../out.json]", "../out.json is outside of the work tree"),
        ("outputs: [json=.git/hooks/post-merge]", "post-merge is outside of the work tree"),
        ("namespace-labels: [a]", "namespace-labels: must be an object"),
        ("policies: production", "policies: must be a list"),
        ("{policies: [production], ignore: [tag]}", "--ignore tag: no policy of this name"),
    ],
)
def test_a_project_file_names_nothing_elsewhere(check, text, says):
    """Neither code, nor a cluster, nor a file outside of the work tree; nothing is ignored."""
    Path(".git").mkdir()
    Path("link.yaml").symlink_to("../outside.yaml")
    Path(".gatewright.yaml").write_text(text)
    code, _, err = check()
    assert (code in (2, 3), says in err) == (True, True), err
    assert not Path("../out.json").exists()


def test_a_project_file_that_is_a_link_is_not_read(check):
    """What it would say is elsewhere."""
    Path(".git").mkdir()
    Path(".gatewright.yaml").symlink_to("../outside.yaml")
    code, _, err = check()
    assert (code, "not read: a link out of" in err) == (3, True)


@pytest.mark.parametrize(
    ("yaml", "toml", "says"),
    [
        ("policies: [policies.yaml]\n---\nnamespace: shop\n", "", "is one YAML object"),
        (
            "policies: [policies.yaml]\n",
            "[tool.gatewright]\nnamespace = 'a'\n",
            "keep one of the two",
        ),
        ("", "[tool.gatewright]\nnamespace = a\n", "pyproject.toml: not TOML"),
        ("", "[tool]\ngatewright = 1\n", "tool.gatewright is not a table"),
    ],
)
def test_nothing_of_a_project_file_is_ignored(check, yaml, toml, says):
    """A second document, a second file, a file that cannot be read: each is an error."""
    if yaml:
        Path(".gatewright.yaml").write_text(yaml)
    Path("pyproject.toml").write_text(toml)
    code, _, err = check()
    assert (code, says in err) == (3, True), err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("fail-on: denied\n", "fail-on: 'denied' is not one of 'deny', 'warn', 'never'."),
        ("policies: [production]\nnamespace: {a: b}\n", "namespace: must be a text"),
        ("policies: [production]\nnamespace: A_B\n", "namespace: "),
        ("policies: [production]\nnamespace-labels: {a: b}\n", "namespace-labels: labels must be"),
        ("policies: [production]\noutputs: [word]\n", "outputs: "),
    ],
)
def test_a_bad_value_is_said_with_its_file_and_key(check, text, says):
    """Not as an option that was never written."""
    Path(".gatewright.yaml").write_text(text)
    code, _, err = check()
    assert (code, f"Error: .gatewright.yaml: {says}" in err) == (2, True), err


def test_a_pyproject_of_other_tools_does_not_matter(check):
    """Even if they cannot read it."""
    Path(".gatewright.yaml").write_text("policies: [policies.yaml]\n")
    Path("pyproject.toml").write_text("[tool.other]\na = b\n")
    assert check()[0] == 1
