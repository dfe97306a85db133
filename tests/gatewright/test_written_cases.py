"""`gatewright test --write-cases`: what passes today is a case for tomorrow, without secrets."""

import json
from pathlib import Path

import pytest
import yaml

from gatewright.cli import main

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "it", "namespace": "shop", "uid": "1"},
    "spec": {
        "hostPID": True,
        "containers": [
            {"name": "app", "image": "nginx:1", "env": [{"name": "KEY", "value": "hidden"}]}
        ],
    },
}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "it"}, "data": {"a": "eA=="}}


def review(operation="CREATE", **more):
    """Return a recorded review, as one line."""
    request = {
        "uid": "u",
        "operation": operation,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "shop",
        "userInfo": {"username": "jane", "groups": ["dev"]},
        "object": POD,
        **more,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(review) + "\n"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run `gatewright test` in a directory of the test's own; return exit code and standard error."""
    monkeypatch.chdir(tmp_path)

    def _run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["test", *arguments])
        return ended.value.code, capsys.readouterr().err

    return _run


def test_reviews_and_manifests_become_cases_that_pass(run):
    """Equal requests are one case; what no policy judges is named."""
    Path("reviews.json").write_text(review() * 2 + review("UPDATE", oldObject=POD))
    Path("manifests").mkdir()
    Path("manifests/all.yaml").write_text(yaml.safe_dump_all([POD, SECRET]))
    code, err = run(
        "--policies", "baseline", "--write-cases", "cases.yaml", "reviews.json", "manifests"
    )
    assert code == 0
    assert err.splitlines() == [
        "left out: manifests/all.yaml:16: 4: CREATE Secret it: no policy judges it",
        "cases.yaml: 3 cases",
    ]
    text = Path("cases.yaml").read_text()
    assert "hidden" not in text
    created, updated, applied = yaml.safe_load(text)["cases"]
    assert created["expect"]["denied"][0]["path"] == "spec.hostPID"
    assert (created["username"], "uid" in created["object"]["metadata"]) == ("jane", False)
    assert updated["expect"].keys() == {"warned"}
    assert "username" not in applied
    assert run("cases.yaml")[0] == 0


def test_without_a_request_that_is_judged_nothing_is_written(run):
    """It is an error, and so is a set that is not one file."""
    Path("secret.yaml").write_text(yaml.safe_dump(SECRET))
    assert run("--policies", "baseline", "--write-cases", "cases.yaml", "secret.yaml")[0] == 3
    assert not Path("cases.yaml").exists()
    assert run("--write-cases", "cases.yaml", "secret.yaml")[0] == 2
    assert run("--policies", "baseline", "secret.yaml")[0] == 2
