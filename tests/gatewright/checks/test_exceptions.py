"""Exceptions for existing violations: written by `check`, counted by `exceptions`."""

import copy
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from gatewright.cli import main
from webhook.engine.kinds import KINDS
from webhook.harness.bases import smallest

CONTAINER = {"name": "app", "image": "nginx:1.21"}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "shop", "namespace": "production"},
    "spec": {
        "replicas": 11,
        "selector": {"matchLabels": {"app": "shop"}},
        "template": {
            "metadata": {"labels": {"app": "shop"}},
            "spec": {"containers": [CONTAINER]},
        },
    },
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "shop-7d9f8-", "namespace": "production"},
    "spec": {"containers": [CONTAINER]},
}
IMAGES = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: images}
spec: {policy: image-registries, params: {registries: [registry.company.com]}}
"""
WHEN = ("--expires", "2100-01-01", "--reason", "older than the rules")
PRODUCTION = ("--policies", "production")


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run the command line in a directory with the Deployment; return exit code and streams."""
    monkeypatch.chdir(tmp_path)
    Path("shop.yaml").write_text(yaml.safe_dump(DEPLOYMENT))

    def _run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        captured = capsys.readouterr()
        return ended.value.code, captured.out, captured.err

    return _run


def changed(object, change):
    """Return a copy of an object that a function changed."""
    found = copy.deepcopy(object)
    change(found)
    return found


def test_written_exceptions_make_the_same_check_clean_and_no_other(run):
    """Another object, another container and another field are denied as before."""
    code, _, err = run("check", *PRODUCTION, "--write-exceptions", "ex.yaml", *WHEN, "shop.yaml")
    assert (code, err) == (1, "note: ex.yaml: 1 exception\n")
    (exception,) = yaml.safe_load_all(Path("ex.yaml").read_text())
    assert exception["metadata"]["namespace"] == "gatewright-system"
    assert {key: exception["spec"][key] for key in ("reason", "expires")} == {
        "reason": "older than the rules",
        "expires": "2100-01-01T00:00:00Z",
    }
    assert exception["spec"]["exceptions"][0] == {
        "policy": "image-registries",
        "kinds": ["Deployment"],
        "names": ["shop"],
        "namespaces": ["production"],
        "paths": ["spec.template.spec.containers[name=app].image"],
    }
    with_exceptions = ("check", *PRODUCTION, "--policies", "ex.yaml")
    assert run(*with_exceptions, "shop.yaml")[0] == 0

    def verdict(object):
        Path("other.yaml").write_text(yaml.safe_dump(object))
        return run(*with_exceptions, "other.yaml")[1]

    other = verdict(changed(DEPLOYMENT, lambda each: each["metadata"].update(name="other")))
    assert other.splitlines()[-1] == "1 object: 1 denied"
    assert "spec.replicas" in other
    more = {"name": "more", "image": "nginx:1.21"}
    containers = verdict(
        changed(
            DEPLOYMENT, lambda each: each["spec"]["template"]["spec"]["containers"].append(more)
        )
    )
    assert "containers[name=more].image" in containers
    assert "containers[name=app].image" not in containers


def test_written_exceptions_cover_the_pods_of_a_workload(run):
    """A rescheduled pod of the Deployment is admitted, a pod with another container is not."""
    run("check", *PRODUCTION, "--write-exceptions", "ex.yaml", *WHEN, "shop.yaml")
    with_exceptions = ("check", *PRODUCTION, "--policies", "ex.yaml", "pod.yaml")
    Path("pod.yaml").write_text(yaml.safe_dump(POD))
    assert run(*with_exceptions)[0] == 0
    renamed = changed(POD, lambda each: each["spec"]["containers"][0].update(name="evil"))
    Path("pod.yaml").write_text(yaml.safe_dump(renamed))
    assert run(*with_exceptions)[0] == 1


def test_pods_with_a_long_name_are_covered_too(run):
    """The API server keeps 58 characters of a generateName."""
    long = changed(DEPLOYMENT, lambda each: each["metadata"].update(name="n" * 60))
    Path("shop.yaml").write_text(yaml.safe_dump(long))
    run("check", *PRODUCTION, "--write-exceptions", "ex.yaml", *WHEN, "shop.yaml")
    with_exceptions = ("check", *PRODUCTION, "--policies", "ex.yaml", "pod.yaml")
    named = {"name": f"{'n' * 58}4x7gk", "namespace": "production"}
    Path("pod.yaml").write_text(yaml.safe_dump({**POD, "metadata": named}))
    assert run(*with_exceptions)[0] == 0
    named["name"] = f"{'n' * 57}4x7gk"
    Path("pod.yaml").write_text(yaml.safe_dump({**POD, "metadata": named}))
    assert run(*with_exceptions)[0] == 1


def test_fields_of_a_pods_metadata_are_covered_too(run):
    """A missing label of a pod template is one of the pods, too."""
    Path("labels.yaml").write_text(
        "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {name: team}\n"
        'spec: {policy: required-labels, params: {where: pods, labels: {team: "*"}}}\n'
    )
    policies = ("check", "--policies", "labels.yaml")
    run(*policies, "--write-exceptions", "ex.yaml", *WHEN, "shop.yaml")
    Path("pod.yaml").write_text(yaml.safe_dump(POD))
    assert run(*policies, "pod.yaml")[0] == 1
    assert run(*policies, "--policies", "ex.yaml", "pod.yaml")[0] == 0


def test_pods_of_a_custom_kind_are_covered_too(run, monkeypatch):
    """A Rollout creates ReplicaSets and pods."""
    monkeypatch.delitem(KINDS, ("argoproj.io", "Rollout"), raising=False)
    rollout = {**DEPLOYMENT, "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
    Path("shop.yaml").write_text(yaml.safe_dump(rollout))
    Path("images.yaml").write_text(IMAGES)
    policies = ("check", "--policies", "images.yaml")
    added = ("--pod-kinds", "rollouts.argoproj.io/v1alpha1/Rollout=spec.template.spec")
    run(*policies, *added, "--write-exceptions", "ex.yaml", *WHEN, "shop.yaml")
    del KINDS["argoproj.io", "Rollout"]
    replica_set = {**DEPLOYMENT, "kind": "ReplicaSet"}
    replica_set["metadata"] = {"name": "shop-7d9f8", "namespace": "production"}
    Path("pods.yaml").write_text(yaml.safe_dump_all([POD, replica_set]))
    assert run(*policies, "pods.yaml")[1].splitlines()[-1] == "2 objects: 2 denied"
    assert run(*policies, "--policies", "ex.yaml", "pods.yaml")[0] == 0


@pytest.mark.parametrize(
    ("namespace", "name"),
    [
        ("production", None),
        ("production", "sh?p"),
        ("production", "s*p"),
        ("production", "s" * 500),
        ("Pro*", "shop"),
    ],
)
def test_no_exception_covers_other_names(run, namespace, name):
    """An object that an exception cannot name gets none; a note has its violations."""
    metadata = {"namespace": namespace} | ({"name": name} if name else {})
    odd = {**DEPLOYMENT, "metadata": metadata}
    Path("shop.yaml").write_text(yaml.safe_dump_all([odd, DEPLOYMENT]))
    Path("images.yaml").write_text(IMAGES)
    denied = ("check", "--policies", "images.yaml")
    code, _, err = run(*denied, "--write-exceptions", "ex.yaml", *WHEN, "shop.yaml")
    first, note, *_ = err.splitlines()
    assert (code, first) == (1, "note: ex.yaml: 1 exception")
    shown = f"Deployment {namespace}/{name or '*'}"
    assert note.startswith(f"note: {shown} is denied with them, too: ")


def test_a_field_is_exempt_in_every_version_of_its_kind(run):
    """Messages name the field as it was written; v1 has `spec.poll.question`."""
    Path("votes.yaml").write_text(
        "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {name: votes}\n"
        "spec:\n  match: {any: [{kinds: [VoteConfig]}]}\n"
        "  validations: [{expression: 'false', message: never, path: spec.poll.question}]\n"
    )
    group, metadata = "voting.schoolofdevops.com", {"name": "cats", "namespace": "production"}
    options = [{"id": "a", "label": "Cats"}, {"id": "b", "label": "Dogs"}]
    specs = {
        "v1alpha1": {"question": "Which?", "options": options},
        "v1": {"poll": {"question": "Which?"}, "options": options},
    }
    for version, spec in specs.items():
        vote = {"apiVersion": f"{group}/{version}", "kind": "VoteConfig", "metadata": metadata}
        Path(f"{version}.yaml").write_text(yaml.safe_dump({**vote, "spec": spec}))
    policies = ("check", "--policies", "votes.yaml")
    for written in specs:
        run(*policies, "--write-exceptions", "ex.yaml", *WHEN, f"{written}.yaml")
        for judged in specs:
            assert run(*policies, "--policies", "ex.yaml", f"{judged}.yaml")[0] == 0


def test_an_exception_for_one_of_several_children_is_in_use(run):
    """Another Deployment of the same custom resource follows the policy."""
    stack = smallest("AppStack", "shop", "production")
    stack["spec"] = {
        "backend": {"image": "registry.company.com/backend:1.0"},
        "frontend": {"image": "nginx:1.21"},
    }
    Path("shop.yaml").write_text(yaml.safe_dump(stack))
    Path("images.yaml").write_text(IMAGES)
    policies = ("--policies", "images.yaml")
    run("check", *policies, "--write-exceptions", "ex.yaml", *WHEN, "shop.yaml")
    code, out, _ = run("exceptions", *policies, "--policies", "ex.yaml", "shop.yaml")
    assert (code, out.splitlines()[-1]) == (0, "1 exception: 1 in use")


def test_exceptions_need_an_end_and_a_reason(run):
    """Both are options."""
    code, _, err = run("check", *PRODUCTION, "--write-exceptions", "ex.yaml", "shop.yaml")
    assert code == 2
    assert "--write-exceptions needs --expires and --reason" in err


def written(name, expires, **entry):
    """Write an exception from replica-limits; return the options that name it."""
    document = {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "PolicyException",
        "metadata": {"name": name, "namespace": "gatewright-system"},
        "spec": {
            "reason": "r",
            "expires": f"{expires:%Y-%m-%dT00:00:00Z}",
            "exceptions": [{"policy": "replica-limits", **entry}],
        },
    }
    Path(f"{name}.yaml").write_text(yaml.safe_dump(document))
    return "--policies", f"{name}.yaml"


@pytest.mark.parametrize(
    ("entry", "days", "code", "verdict", "message"),
    [
        ({"names": ["shop"]}, 99, 0, "in use", "covers 1 violation"),
        ({"names": ["gone"]}, 99, 1, "unused", "it covers no violation of the judged objects"),
        ({"kinds": ["Deployment"]}, 99, 1, "too wide", "it exempts every object from the policy"),
        ({"names": ["shop"]}, 9, 0, "ending", "what it covers is denied then"),
        ({"names": ["shop"]}, -9, 1, "expired", "it expired at"),
        ({"names": ["shop"], "params": {"maximum": 20}}, 99, 0, "in use", "covers 1 violation"),
        ({"names": ["shop"], "paths": ["spec.replicas"]}, 99, 0, "in use", "covers 1 violation"),
        ({"names": ["shop"], "paths": ["spec.other"]}, 99, 1, "unused", "it covers no violation"),
    ],
)
def test_what_is_wrong_with_an_exception(run, entry, days, code, verdict, message):
    """The faults depend on the violations that it covers, and on its end."""
    options = written("it", datetime.now(UTC) + timedelta(days), **entry)
    ended, out, err = run("exceptions", *PRODUCTION, *options, "shop.yaml")
    assert (ended, err) == (code, "")
    lines = out.splitlines()
    assert lines[0] == f"{verdict}  PolicyException gatewright-system/it  (it.yaml:1)"
    assert message in out
    assert lines[-1] == f"1 exception: 1 {verdict}"
