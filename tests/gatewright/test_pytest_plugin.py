"""The pytest plugin collects case files; each case is a test."""

import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PLUGIN = Path(__file__).parents[2] / "plugins" / "pytest-gatewright"
CASES = """\
policy: replica-limits
cases:
- {name: few are fine, object: {kind: Deployment, spec: {replicas: 3}}, expect: allowed}
- {name: many are not, object: {kind: Deployment, spec: {replicas: 30}}, expect: allowed}
"""


@pytest.fixture
def project(pytester, monkeypatch):
    """A project whose pytest runs the case files in `cases`."""
    monkeypatch.setenv("PYTHONPATH", str(PLUGIN))
    pytester.makeini(
        f"[pytest]\ngatewright_cases = cases\ngatewright_command = {sys.executable} -m gatewright\n"
    )
    (pytester.path / "cases").mkdir()
    (pytester.path / "cases/limits.yaml").write_text(CASES)
    (pytester.path / "other.yaml").write_text("a: b\n")
    return pytester


def run(project):
    """Run pytest in the project."""
    return project.runpytest_subprocess(
        "-p", "pytest_gatewright", "-p", "no:cacheprovider", "-p", "no:randomly"
    )


@pytest.mark.long
def test_each_case_is_a_test(project):
    """A failure shows the differences and the place of the case."""
    result = run(project)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*cases/limits.yaml:4: many are not",
            "  expected allowed, got denied with code 403",
            "*1 failed, 1 passed*",
        ]
    )


@pytest.mark.long
def test_an_invalid_case_file_is_an_error(project):
    """The error has place and message."""
    (project.path / "cases/limits.yaml").write_text(
        CASES.replace("replica-limits", "replica-limit")
    )
    result = run(project)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ['*limits.yaml:1: policy: no policy "replica-limit"; did you mean "replica-limits"?']
    )


@pytest.mark.long
def test_a_misspelt_path_is_an_error(project):
    """Otherwise, the missing cases would not be noticed among other tests."""
    project.makeini("[pytest]\ngatewright_cases = casess\n")
    project.makepyfile("def test_one(): pass")
    result = run(project)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: gatewright_cases: */casess: no such file or directory"])
