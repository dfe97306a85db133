"""What doctor could not judge is named."""

import json
from pathlib import Path

import pytest

from config.documents import Document
from gatewright.cli import main
from gatewright.tools.doctor.state import ClusterState
from gatewright.tools.doctor.unjudged import note_unjudged
from tests.gatewright.tools.doctor.clusters import (
    backend,
    configuration,
    state_of,
    webhook,
    without,
)


def of_files(*objects):
    """Return the state of files with these objects."""
    state = ClusterState()
    assert not state.read(map(Document.of_object, objects))
    return state


@pytest.mark.parametrize(
    ("webhooks", "in_files", "in_a_cluster"),
    [
        (
            [webhook(rules=[]), webhook(name="b", rules=[])],
            "pods.guard.example.com and b have no rules; a program that adds them in the cluster is "
            "judged there",
            "pods.guard.example.com and b have no rules, so the API server calls none of them",
        ),
        (
            [webhook(), webhook(name="b", rules=[])],
            "b has no rules; a program that adds them in the cluster is judged there",
            "b has no rules, so the API server calls none of them",
        ),
        (
            [],
            "it has no webhooks; a program that adds them in the cluster is judged there",
            "it has no webhooks, so the API server calls none of them",
        ),
    ],
)
def test_webhooks_without_rules(webhooks, in_files, in_a_cluster):
    """They are named, in files and in a cluster."""
    objects = [configuration(*webhooks), *backend()]
    title = "ValidatingWebhookConfiguration guard: not judged: "
    assert list(note_unjudged(of_files(*objects))) == [title + in_files]
    assert list(note_unjudged(state_of(objects))) == [title + in_a_cluster]


def test_a_service_that_the_files_lack():
    """A cluster says no-endpoint; the files are just not the whole."""
    objects = [configuration(webhook()), *without(backend(), "Service")]
    assert list(note_unjudged(of_files(*objects))) == [
        "Service guard/guard: not judged: it is not in the files, so neither are its pods; "
        "ValidatingWebhookConfiguration guard calls it"
    ]
    assert list(note_unjudged(state_of(objects))) == []


def test_a_bundle_that_is_set_in_the_cluster():
    """The note names the annotation."""
    judge = configuration(webhook())
    annotation = "service.beta.openshift.io/inject-cabundle"
    judge["metadata"]["annotations"] = {annotation: "true"}
    assert list(note_unjudged(of_files(judge, *backend()))) == [
        "ValidatingWebhookConfiguration guard: caBundle is not judged: it is set in the cluster "
        f"({annotation})"
    ]


def test_policies_and_bindings_without_each_other():
    """Each names what the files lack."""
    api = {"apiVersion": "admissionregistration.k8s.io/v1"}
    policy = api | {
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "a"},
        "spec": {"validations": [{"expression": "true"}]},
    }
    binding = api | {
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "b"},
        "spec": {"policyName": "b", "validationActions": ["Deny"]},
    }
    assert list(note_unjudged(of_files(policy, binding))) == [
        "ValidatingAdmissionPolicyBinding b: not judged: its policy b is not in the files",
        "ValidatingAdmissionPolicy a: not judged: no binding of it is in the files",
    ]


def test_files_without_any_webhook_are_not_silently_fine(tmp_path: Path, capsys):
    """Kyverno's chart is like this: it registers its webhooks when it runs."""
    file = tmp_path / "service.yaml"
    file.write_text("apiVersion: v1\nkind: Service\nmetadata: {name: a}\n")
    with pytest.raises(SystemExit) as ended:
        main(["doctor", str(file)])
    assert ended.value.code == 3
    assert capsys.readouterr().err == (
        f"{file}: no webhook configuration, admission policy, conversion webhook or aggregated "
        "API. A program that registers its webhooks when it runs is judged in a cluster: "
        "gatewright doctor --kubeconfig FILE\n"
    )


def test_a_configuration_without_rules_is_not_ok(tmp_path: Path, capsys):
    """Its verdict is counted apart, with a note."""
    file = tmp_path / "webhooks.yaml"
    file.write_text(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\n"
        "metadata: {name: a}\nwebhooks: [{name: a.example.com}]\n"
    )
    with pytest.raises(SystemExit) as ended:
        main(["doctor", str(file)])
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (0, "1 object: 1 not judged\n")
    assert "MutatingWebhookConfiguration a: not judged: a.example.com has no rules" in printed.err


def test_files_are_accounted_for(tmp_path, monkeypatch, capsys):
    """Of two objects with one name the second is named, and so are kinds that no check reads."""
    monkeypatch.chdir(tmp_path)
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "a"},
        "spec": {"validations": [{"expression": "true"}]},
    }
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "a"}}
    changed = policy | {"spec": {"validations": [{"expression": "false"}]}}
    for name, objects in {
        "a.json": [policy, role],
        "b.json": [changed],
        "c.json": [policy],
    }.items():
        items = {"apiVersion": "v1", "kind": "List", "items": objects}
        (tmp_path / name).write_text(json.dumps(items))
    with pytest.raises(SystemExit):
        main(["doctor", "."])
    lines = capsys.readouterr().err.splitlines()
    assert "note: b.json:1: not judged: an earlier object of this name is" in lines
    assert "note: 1 Role: not judged: no check reads objects of these kinds" in lines
