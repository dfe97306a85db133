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
    other = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    write(tmp_path / "b.yaml", asks, other)
    result = invoke("migrate", "b.yaml", "--output", "again")
    expected = "b.yaml:20: Pod p: skipped: not a policy of Kyverno, Gatekeeper or Pod Security\n"
    assert (result.code, result.err.partition(": ")[2]) == (3, expected.partition(": ")[2])


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
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p\x1b[0m"}}
    write(tmp_path / "kyverno.yaml", asks, pod)
    result = invoke("migrate", "kyverno.yaml", "--output", "ours")
    assert r"ClusterPolicy a\x1b[31m\n::error::b, rule r" in result.out
    assert r"Pod p\x1b[0m: skipped" in result.err
    assert "\x1b" not in result.out + result.err
