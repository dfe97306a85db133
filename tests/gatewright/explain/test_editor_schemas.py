"""The JSON Schemas for editors accept what Gatewright accepts."""

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator

from gatewright.cli import main
from gatewright.explain import editor_schemas
from webhook.policy_sets.catalogue import catalogue

ROOT = Path(__file__).parents[3]
SCHEMAS = {
    name: json.loads(text) for name, text in editor_schemas.render(catalogue().values()).items()
}
POLICY = {
    "apiVersion": "gatewright.io/v1alpha1",
    "kind": "ClusterAdmissionPolicy",
    "metadata": {"name": "few"},
    "spec": {"policy": "replica-limits", "params": {"maximum": 3}},
}


def documents(pattern):
    """Return every YAML document of some files."""
    found = [
        document
        for file in sorted(ROOT.glob(pattern))
        for document in yaml.load_all(file.read_text(), yaml.CSafeLoader)
    ]
    assert found
    return [each for each in found if each is not None]


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        (editor_schemas.CASES, "tests/policies/*.yaml"),
        (editor_schemas.POLICY_SET, "config/policies/*.yaml"),
    ],
)
def test_files_of_this_repository_are_valid(schema, pattern):
    """These are all case files and policy sets."""
    validator = Draft7Validator(SCHEMAS[schema])
    assert [
        error.message
        for document in documents(pattern)
        for error in validator.iter_errors(document)
    ] == []


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"policy": "replica-limits", "params": {"maximun": 3}}, "'maximun' was unexpected"),
        ({"policy": "replica-limit"}, "'replica-limit' is not one of"),
        ({"policy": "replica-limits", "mach": {}}, "'mach' was unexpected"),
    ],
)
def test_a_typo_is_an_error(spec, message):
    """Parameters are checked against the named policy."""
    found = list(
        Draft7Validator(SCHEMAS[editor_schemas.POLICY_SET]).iter_errors({**POLICY, "spec": spec})
    )
    assert any(message in error.message for error in found)


def test_a_scaffolded_policy_passes_its_cases(tmp_path, monkeypatch, capsys, request):
    """All cases, situations and mutants pass; its case file names the schema for editors."""
    monkeypatch.chdir(tmp_path)
    request.addfinalizer(catalogue.cache_clear)

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([*arguments])
        return ended.value.code, *capsys.readouterr()

    assert run("scaffold", "policy", "owner-labels")[:2] == (
        0,
        "wrote policies/owner_labels.py\nwrote cases/owner_labels.yaml\nwrote cases/.cases.schema.json\n"
        "next: gatewright test --policies-dir policies cases\n",
    )
    assert (
        Path("cases/owner_labels.yaml")
        .read_text()
        .startswith("# yaml-language-server: $schema=./.cases.schema.json\n")
    )
    assert json.loads(Path("cases/.cases.schema.json").read_text()) == SCHEMAS[editor_schemas.CASES]
    assert run("test", "--policies-dir", "policies", "cases", "--coverage", "--mutate") == (
        0,
        "13 cases: 13 passed\n"
        "owner-labels    13 cases      4/4\n"
        "coverage: 100.0 % of 4 situations\n"
        "6 mutants: 6 killed, 0 survived\n",
        "",
    )
    code, _, err = run("scaffold", "policy", "owner-labels")
    assert (code, err.splitlines()[-1]) == (2, 'Error: a policy "owner-labels" already exists')
