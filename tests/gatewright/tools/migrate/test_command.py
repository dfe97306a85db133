"""`gatewright migrate`: what it writes, prints and exits with."""

from typing import NamedTuple

import pytest
import yaml

from gatewright.cli import main
from tests.gatewright.tools.migrate.converted import cluster_policy

PATTERN = {"pattern": {"data": {"team": "?*"}}, "message": "a team is\n  required"}


class Result(NamedTuple):
    """The exit code and the output of a command."""

    code: object
    out: str
    err: str


@pytest.fixture
def invoke(capsys):
    """Run a command."""

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        captured = capsys.readouterr()
        return Result(ended.value.code, captured.out, captured.err)

    return run


def write(path, *objects):
    """Write objects to a file."""
    path.write_text(yaml.safe_dump_all(objects))
    return str(path)


def test_a_policy_set_is_written_that_check_takes(tmp_path, monkeypatch, invoke):
    """The file names the source of each object; the exit code is 0."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "kyverno.yaml", cluster_policy(PATTERN, kinds=["ConfigMap"], name="team"))
    result = invoke("migrate", "kyverno.yaml", "--output", "ours")
    assert (result.code, result.out, result.err) == (
        0,
        "1 object written to ours, 0 rules not converted (ours/not-converted.md)\n",
        "",
    )
    assert (
        (tmp_path / "ours/clusterpolicy-team.yaml").read_text()
        == """\
# From ClusterPolicy team, rule r (kyverno.yaml:1)
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata:
  name: team
spec:
  validations:
  - expression: has(object.data) && has(object.data.team) && object.data.team != ''
    message: a team is required
  match:
    any:
    - kinds:
      - ConfigMap
  validationActions:
  - Deny
"""
    )
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    checked = invoke("check", "--policies", "ours", write(tmp_path / "c.yaml", config))
    assert checked.code == 1
    assert "team: a team is required" in checked.out


def test_what_is_not_converted_is_printed_and_reported(tmp_path, monkeypatch, invoke):
    """The exit code is 1, or 3 if something could not be read; the rest is converted."""
    monkeypatch.chdir(tmp_path)
    asks = cluster_policy(PATTERN, name="asks", context=[{"name": "c"}])
    write(tmp_path / "a.yaml", asks)
    result = invoke("migrate", "a.yaml", "--output", "ours")
    line = "a.yaml:1: not converted: ClusterPolicy asks, rule r: it looks data up (context), which "
    line += "no converted rule does; nearest: a rule of your own in CEL"
    assert (result.code, result.out.splitlines()[0]) == (1, line)
    assert (
        "| ClusterPolicy asks, rule r (a.yaml:1) | it looks data up (context), which no converted rule does | a rule of your own in CEL |"
        in (tmp_path / "ours/not-converted.md").read_text()
    )
    pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}} for name in "pq"]
    other = {"apiVersion": "policies.example.com/v1", "kind": "Rule", "metadata": {"name": "r"}}
    write(tmp_path / "b.yaml", asks, *pods, other)
    result = invoke("migrate", "b.yaml", "--output", "again")
    expected = "Rule r: skipped: not a policy of Kyverno, Gatekeeper or Pod Security\n"
    assert (result.code, result.err.partition(": ")[2]) == (3, expected)
    assert "no policies, so not converted: 2 Pod\n" in result.out


def test_reasons_are_counted_before_the_list(tmp_path, monkeypatch, invoke):
    """The same reason with other details is one row."""
    monkeypatch.chdir(tmp_path)
    write(
        tmp_path / "a.yaml",
        cluster_policy(PATTERN, name="a", kinds=["Gadget"]),
        cluster_policy(PATTERN, name="b", kinds=["Gizmo"]),
        cluster_policy(PATTERN, name="c", context=[{"name": "c"}]),
    )
    invoke("migrate", "a.yaml", "--output", "ours")
    report = (tmp_path / "ours/not-converted.md").read_text()
    assert (
        report.partition("No policy is known")[0]
        == """\
# 3 rules not converted

Converted: 0 objects, in the other files.

| rules | reason | nearest |
| --- | --- | --- |
| 2 | its kind is unknown, since no CustomResourceDefinition of it is among the FILEs | add its CustomResourceDefinition to the FILEs |
| 1 | it looks data up (context), which no converted rule does | a rule of your own in CEL |

"""
    )


def test_title_and_description_are_kept(tmp_path, monkeypatch, invoke):
    """The title is a comment, and the description an annotation."""
    monkeypatch.chdir(tmp_path)
    prefix = "policies.kyverno.io"
    words = {f"{prefix}/title": "Teams", f"{prefix}/description": "Each object\n  has a team."}
    policy = cluster_policy(PATTERN, kinds=["ConfigMap"], name="team", annotations=words)
    write(tmp_path / "a.yaml", policy)
    invoke("migrate", "a.yaml", "--output", "ours")
    text = (tmp_path / "ours/clusterpolicy-team.yaml").read_text()
    assert text.startswith("# Teams\n# From ClusterPolicy team, rule r (a.yaml:1)\n")
    annotations = yaml.safe_load(text)["metadata"]["annotations"]
    assert annotations == {"kubernetes.io/description": "Each object has a team."}


def test_a_template_without_constraints_says_what_to_add(tmp_path, monkeypatch, invoke):
    """Nothing is judged by a template alone."""
    monkeypatch.chdir(tmp_path)
    template = {
        "apiVersion": "templates.gatekeeper.sh/v1",
        "kind": "ConstraintTemplate",
        "metadata": {"name": "k8sours"},
        "spec": {"crd": {"spec": {"names": {"kind": "K8sOurs"}}}, "targets": []},
    }
    write(tmp_path / "a.yaml", template)
    result = invoke("migrate", "a.yaml", "--output", "ours")
    assert (result.code, result.out.splitlines()[0]) == (
        1,
        "a.yaml:1: not converted: ConstraintTemplate k8sours: no constraint of its template is among "
        "the FILEs: K8sOurs; nearest: add its constraints to the FILEs: kubectl get constraints "
        "--output=yaml",
    )


def test_of_mutations_that_conflict_the_first_is_written(tmp_path, monkeypatch, invoke):
    """What is written can be in force together."""
    monkeypatch.chdir(tmp_path)
    policies = [
        {
            "apiVersion": "kyverno.io/v1",
            "kind": "ClusterPolicy",
            "metadata": {"name": name},
            "spec": {
                "rules": [
                    {
                        "name": "r",
                        "match": {"any": [{"resources": {"kinds": ["Service"]}}]},
                        "mutate": {"patchStrategicMerge": {"spec": {"type": name}}},
                    }
                ]
            },
        }
        for name in ("a", "b")
    ]
    write(tmp_path / "a.yaml", *policies)
    result = invoke("migrate", "a.yaml", "--output", "ours")
    assert result.code == 1
    assert (
        "not converted: ClusterPolicy b, rule r: another mutation conflicts with it" in result.out
    )
    assert sorted(each.name for each in (tmp_path / "ours").iterdir()) == [
        "clusterpolicy-a.yaml",
        "not-converted.md",
    ]


def test_what_a_policy_object_cannot_hold_is_listed_and_the_rest_is_converted(
    tmp_path, monkeypatch, invoke
):
    """A rule that is too large is rejected before its conversion."""
    monkeypatch.chdir(tmp_path)
    labels = {f"key-{number}": "?*" for number in range(4_000)}
    wide = cluster_policy({"pattern": {"metadata": {"labels": labels}}}, name="wide")
    write(tmp_path / "a.yaml", wide, cluster_policy(PATTERN, kinds=["ConfigMap"], name="team"))
    result = invoke("migrate", "a.yaml", "--output", "ours")
    assert (result.code, result.out, result.err) == (
        1,
        "a.yaml:1: not converted: ClusterPolicy wide, rule r: it has 71,011 bytes; a policy "
        "object has at most 65,536; nearest: several smaller rules\n"
        "1 object written to ours, 1 rule not converted (ours/not-converted.md)\n",
        "",
    )


def test_a_directory_that_cannot_be_written_is_one_error(tmp_path, invoke):
    """The exit code is 2 if the directory exists already, and 3 if writing fails."""
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    policy = write(tmp_path / "a.yaml", cluster_policy(PATTERN, kinds=["ConfigMap"]))
    for output, code, error in (
        (tmp_path, 2, f"Error: {tmp_path} exists and is not empty; name a new directory"),
        (notes, 2, f"Error: {notes} is not a directory; name a new one"),
        (notes / "ours", 3, f"{notes / 'ours'}: Not a directory"),
        ("/proc/ours", 3, "/proc/ours: No such file or directory"),
    ):
        result = invoke("migrate", policy, "--output", str(output))
        assert (result.code, result.err.splitlines()[-1]) == (code, error)
    assert notes.read_text() == "mine"


def test_names_cannot_control_the_terminal(tmp_path, monkeypatch, invoke):
    """Control characters in what is converted are printed as escapes."""
    monkeypatch.chdir(tmp_path)
    asks = cluster_policy(PATTERN, name="a\x1b[31m\n::error::b", context=[{"name": "c"}])
    other = {"apiVersion": "example.com/v1", "kind": "Rule", "metadata": {"name": "p\x1b[0m"}}
    write(tmp_path / "kyverno.yaml", asks, other)
    result = invoke("migrate", "kyverno.yaml", "--output", "ours")
    assert r"ClusterPolicy a\x1b[31m\n::error::b, rule r" in result.out
    assert r"Rule p\x1b[0m: skipped" in result.err
    assert "\x1b" not in result.out + result.err
