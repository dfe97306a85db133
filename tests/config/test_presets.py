"""References to policy sets: presets by name, files by path."""

import re
from itertools import combinations
from pathlib import Path

import pytest

from config.documents import documents_at, read_documents
from config.presets import policy_path, presets, summary_of
from config.settings import load_settings
from webhook.engine.conflicts import without_conflicts
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import read

README = Path(__file__).parents[2] / "README.md"


def test_each_preset_is_a_policy_set():
    """The README has a row for each."""
    rows = README.read_text().partition("\n| preset |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^\| \[([a-z-]+)\]\(config/policies/", rows, re.MULTILINE)) == list(
        presets()
    )
    for path in presets().values():
        assert read(list(read_documents(path)), catalogue()).policies


def test_presets_combine():
    """Each pair fits together, and so do all of them: a policy is in force under one name."""
    for pair in combinations(presets().values(), 2):
        assert read(documents_at(pair), catalogue()).policies
    every = read(documents_at([policy_path("all")]), catalogue()).policies
    named = {
        policy.name
        for path in presets().values()
        for policy in read(documents_at([path]), catalogue()).policies
    }
    assert {each.name for each in every} == named
    assert without_conflicts(every) == (every, ())


def test_the_comment_of_a_preset_matches_its_policies():
    """Each preset's first sentence is compared with its policies."""
    assert summary_of(presets()["baseline"]) == (
        "Pod Security Standards, level baseline: no known way for a pod to take over its node"
    )


def test_a_file_of_that_name_is_named_by_a_path(tmp_path, monkeypatch):
    """Beside a file `baseline`, the name is the preset's."""
    monkeypatch.chdir(tmp_path)
    Path("baseline").touch()
    found = load_settings(
        {"policies": ["baseline", "./baseline,own.yaml"]}, environment={}
    ).policies
    assert found == [presets()["baseline"], Path("baseline"), Path("own.yaml")]


def test_a_path_is_relative_to_the_directory(tmp_path):
    """Paths in `policies` of a case file are relative to the file's directory."""
    (tmp_path / "sets").mkdir()
    assert policy_path("sets", tmp_path) == tmp_path / "sets"


def test_a_word_that_names_nothing_is_an_error():
    """The error suggests a similar name."""
    message = 'restricte: no such file or directory, and no preset; did you mean "restricted"?'
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        policy_path("restricte")
