"""A misspelt field name anywhere in a case is an error, except where users choose the names."""

import copy
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.documents import DocumentError, read_documents
from webhook.harness.cases import load_trials
from webhook.harness.trial import differences
from webhook.policy_sets.catalogue import catalogue

HERE = Path(__file__).parent
EVERY = int(os.environ.get("EVERY", "20"))  # of the keys of all cases; 1: all, in a minute
CHOSEN = {  # the objects whose keys are names that users choose, or that a registry recorded
    *(
        "labels",
        "namespace_labels",
        "matchLabels",
        "selector",
        "annotations",
        "data",
        "config",
        "connection",
    ),
    "autoscalers",  # some name no workload of the case, as they would with any other key
    *("image_signatures", "sysctls", "params", "default", "max", "limits", "requests"),
}
Steps = tuple[Any, ...]


def keys(value: Any, path: Steps = ()) -> Iterator[Steps]:
    """Yield the path of each key of the objects in a value."""
    for key, below in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        if isinstance(value, dict):
            yield (*path, key)
        yield from keys(below, (*path, key))


def misspelt(case: dict[str, Any], path: Steps) -> dict[str, Any]:
    """Return a case with another key at `path`."""
    changed: Any = copy.deepcopy(case)
    parent = changed
    for step in path[:-1]:
        parent = parent[step]
    parent[f"{path[-1]}x"] = parent.pop(path[-1])
    return changed  # type: ignore[no-any-return]


@pytest.mark.long
def test_a_misspelt_key_of_a_case_is_noticed(tmp_path):
    """It is an error of the file, or the response is not the expected one."""
    files = {file: next(read_documents(file)).value for file in sorted(HERE.glob("*.yaml"))}
    places = [
        (file, case, path)
        for file, value in files.items()
        for case in value["cases"]
        for path in keys(case)
    ]
    unnoticed = []
    for file, case, path in places[::EVERY]:
        written = tmp_path / "cases.yaml"
        written.write_text(yaml.safe_dump({**files[file], "cases": [misspelt(case, path)]}))
        try:
            is_noticed = any(differences(trial) for trial in load_trials(written, catalogue()))
        except DocumentError:
            is_noticed = True
        if not is_noticed and not CHOSEN & {*path[:-1]}:
            unnoticed.append((file.name, case["name"], path))
    assert (unnoticed, len(places) > 10_000) == ([], True)
