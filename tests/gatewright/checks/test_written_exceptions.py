"""`check --write-exceptions`: the next check of the same input passes, and nothing else does."""

import copy
import functools
import itertools
import json
import operator
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from gatewright.cli import main
from tests.policies.trials import FILES, trials_of
from webhook.harness.bases import smallest

WHEN = ("--expires", "2100-01-01", "--reason", "r")
PRESETS = ("best-practices", "restricted")
POLICIES = tuple(itertools.chain(*(("--policies", each) for each in PRESETS)))
EACH = 5  # objects of a kind
# What a kind's own type or planner denies, or rules that are always in force: no exceptions.
ALWAYS = ("schema", "-plan", "-rules", "policy-objects")


@pytest.fixture
def check(capsys, monkeypatch, tmp_path):
    """Run `check` on objects in a directory; return exit code and streams."""
    monkeypatch.chdir(tmp_path)

    def run(objects, *arguments, policies=POLICIES):
        Path("objects.yaml").write_text(yaml.safe_dump_all(objects))
        with pytest.raises(SystemExit) as ended:
            main(["check", *policies, *arguments, "objects.yaml"])
        captured = capsys.readouterr()
        return ended.value.code, captured.out, captured.err

    return run


def objects_of_cases():
    """Return objects from cases of the built-in policies, some of each kind, with unique names."""
    by_kind = defaultdict(dict)
    for path in FILES:
        for trial in trials_of(path):
            object = trial.admission.object
            if trial.admission.operation == "CREATE" and not trial.admission.subresource:
                by_kind[object["kind"]][json.dumps(object, sort_keys=True)] = object
    chosen = [
        object for of_kind in by_kind.values() for object in sample(list(of_kind.values()), EACH)
    ]
    return [
        object | {"metadata": object["metadata"] | {"name": f"case-{index}"}}
        for index, object in enumerate(chosen)
    ]


def sample(values, count):
    """Return values spread over a list."""
    return values[:: max(1, len(values) // count)]


@pytest.mark.long
def test_the_next_check_of_anything_passes(check):
    """Objects of all kinds, custom resources with children, fields of wrong types."""
    objects = objects_of_cases()
    code, out, err = check(objects, "--write-exceptions", "ex.yaml", *WHEN)
    assert code in (1, 3), err
    custom = [each["kind"] for each in objects if each["kind"] in ("WebApp", "AppStack")]
    assert len(objects) > 150
    assert len(custom) > 5
    left = re.findall("note: (.*) is denied with them, too: ", err)
    _, out, _ = check(objects, "--policies", "ex.yaml", "-o", "json")
    denied = [each for each in json.loads(out)["results"] if each["verdict"] == "denied"]
    names = {each.rpartition("/")[2].split()[-1] for each in left}
    assert names == {each["name"] for each in denied}
    policies = {violation["policy"] for each in denied for violation in each["violations"]}
    assert {each for each in policies if not each.endswith(ALWAYS)} == set()


FAULTS: dict[str, dict[str, Any]] = {
    "Pod": {
        "image": ("spec", "containers", 0, "image", "nginx:latest"),
        "privileged": ("spec", "containers", 0, "securityContext", {"privileged": True}),
        "host": ("spec", "hostNetwork", True),
        "of a wrong type": ("spec", "hostPID", "yes"),
        "another container": ("spec", "initContainers", [{"name": "other", "image": "other"}]),
    },
    "WebApp": {
        "image": ("spec", "image", "nginx:latest"),
        "labels": ("metadata", "labels", {"app.kubernetes.io/name": "x/y"}),
        "security": ("spec", "securityContext", {"privileged": True}),
    },
}


def with_faults(kind, name, faults):
    """Return an object of a kind with some faults."""
    object = copy.deepcopy(smallest(kind, name, "production"))
    for *steps, last, value in (FAULTS[kind][each] for each in faults):
        functools.reduce(operator.getitem, steps, object)[last] = value
    return object


def test_another_violation_of_the_same_object_is_denied(check):
    """Each fault is exempted alone; the others are still found."""
    names = {
        f"{kind}-{n}".lower(): (kind, fault)
        for kind, faults in FAULTS.items()
        for n, fault in enumerate(faults)
    }
    one = [with_faults(kind, name, [fault]) for name, (kind, fault) in names.items()]
    every = [with_faults(kind, name, FAULTS[kind]) for name, (kind, _) in names.items()]

    def found(objects, *arguments):
        _, out, err = check(objects, "-o", "json", *arguments)
        assert "error" not in err
        return {
            result["name"]: {
                (e["policy"], e["path"]) for e in result["violations"] if e["policy"] != "schema"
            }
            for result in json.loads(out)["results"]
        }

    alone = found(one, "--write-exceptions", "ex.yaml", *WHEN)
    assert found(one, "--policies", "ex.yaml") == {name: set() for name in names}
    whole, left = found(every), found(every, "--policies", "ex.yaml")
    assert [name for name in names if not left[name]] == []
    for name in names:
        assert whole[name] - alone[name] <= left[name]
        assert not left[name] & alone[name]


def test_what_no_exception_can_cover_is_noted_once(check):
    """Three policies ask for the labels of a namespace that is not there."""
    shop = smallest("Deployment", "shop", "default")
    production = ("--policies", "production")
    code, _, err = check([shop], "--write-exceptions", "ex.yaml", *WHEN, policies=production)
    notes = [line for line in err.splitlines() if "is denied with them" in line]
    assert (code, len(notes)) == (3, 1)
    assert notes[0].startswith("note: Deployment default/shop is denied with them, too: cannot be ")


def test_exceptions_that_are_over_are_not_written(check):
    """They would except nothing."""
    when = ("--expires", "2020-01-01", "--reason", "r")
    code, _, err = check([smallest("Pod")], "--write-exceptions", "ex.yaml", *when)
    assert (code, err.splitlines()[-1]) == (
        2,
        "Error: Invalid value for '--expires': 2020-01-01 is over",
    )
    assert not Path("ex.yaml").exists()
