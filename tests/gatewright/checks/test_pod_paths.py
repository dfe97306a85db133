"""A path of `--pod-kinds` that no judged object has is named."""

import pytest

from config.documents import Document
from gatewright.checks.subjects import missing_pod_paths
from webhook.engine.kinds import KINDS, add_pod_kind

TASKS = {"tasks": [{"name": "none"}, {"template": {"spec": {"containers": []}}}]}
JOB = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "spec": TASKS}


@pytest.fixture(autouse=True)
def _own_kinds(monkeypatch):
    """Use a table of kinds for one test."""
    known = dict(KINDS)
    yield
    for key in KINDS.keys() - known.keys():
        del KINDS[key]


@pytest.mark.parametrize(
    ("path", "is_named"),
    [
        ("spec.tasks[].template.spec", False),
        ("spec.task[].template.spec", True),
        ("spec.tasks[].templat.spec", True),
        ("spec.tasks.template.spec", True),
        ("spec.tasks[].template[].spec", True),
    ],
)
def test_a_path_that_no_object_has_is_named(path, is_named):
    """One item of a list with it is enough; an object of another kind is not of interest."""
    add_pod_kind(f"batch.volcano.sh/v1alpha1/Job={path}")
    other = JOB | {"apiVersion": "batch/v1"}
    assert [*missing_pod_paths([Document("b.yaml", other)])] == []
    named = [*missing_pod_paths([Document("a.yaml", JOB), Document("b.yaml", other)])]
    line = f"a.yaml: no Job has {path}, which --pod-kinds names: no pod of it is judged"
    assert named == [line] * is_named
