"""Hostile texts: whatever key or text of a file is a command of a CI, no command of Gatewright prints it as one."""

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gatewright.cli import main
from gatewright.outputs.choice import EXACT
from gatewright.outputs.yaml_text import to_yaml

EVIL = "a\n::error::pwned\x1b[2J\u202e##[add-path]pwned ##vso[task.a]pwned"
COMMAND = re.compile(r"^\s*::error::pwned|\x1b|\u202e|##\w*\[", re.MULTILINE)
IN_JSON = re.compile(r"\x1b|##\w*\[")  # for programs, which show no text to people
OBJECTS = Path(__file__).with_name("hostile.yaml")
SETS = ("--policies", "sets.yaml")
COMMANDS = [
    ("check", "--policies", "all", *(f"--output={form}=OUT/{form}" for form in
      ("json", "sarif", "junit", "markdown", "html")), "all.yaml"),
    ("check", "--policies", "baseline", "--output=github=OUT/github", "all.yaml"),
    ("check", *SETS, "objects.yaml"),
    ("check", "--policies", "all", "--diff", "--unsafe-fixes", "objects.yaml"),
    ("doctor", "all.yaml"),
    ("plan", "all.yaml"),
    ("exceptions", *SETS, "objects.yaml"),
    ("impact", "sets.yaml", "baseline", "objects.yaml"),
    ("export", "vap", "sets.yaml"),
    ("explain", "sets.yaml"),
    ("test", "sets.yaml"),
    ("test", "cases.yaml"),
    ("migrate", "--output", "OUT/migrated", "all.yaml"),
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the path of each text, and of each key with its object."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield path, key
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from places(item, (*path, at))
    else:
        yield path, None


def damaged(value: Any, path: tuple[Any, ...], key: str | None) -> Any:
    """Return a value with one hostile key or text."""
    at = result = copy.deepcopy(value)
    for step in path if key is not None else path[:-1]:
        at = at[step]
    if key is None:
        at[path[-1]] = (at[path[-1]] if isinstance(at[path[-1]], str) else "") + EVIL
    else:
        at[EVIL] = at.pop(key)
    return result


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """Return a directory with files in which each key and each text is hostile once."""
    top = tmp_path_factory.mktemp("hostile")
    read = list(yaml.safe_load_all(OBJECTS.read_text()))
    files = {"all.yaml": read, "cases.yaml": [each for each in read if "cases" in each]}
    own = [each for each in read if str(each.get("apiVersion")).startswith("gatewright.io")]
    files |= {"sets.yaml": own, "objects.yaml": [each for each in read if each not in own]}
    for name, values in files.items():
        every = [damaged(each, *place) for each in values for place in places(each)]
        (top / name).write_text("\n---\n".join(json.dumps(each) for each in [*values, *every]))
    return top


@pytest.mark.long
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_no_text_of_a_file_is_a_command(directory, tmp_path, capsys, monkeypatch, arguments):
    """Not on standard output or standard error, nor in what is written; each run ends without a traceback."""
    monkeypatch.chdir(directory)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    arguments = [each.replace("OUT", str(tmp_path)) for each in arguments]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code in (0, 1, 3)
    texts = dict(zip(("stdout", "stderr"), capsys.readouterr(), strict=True))
    texts |= {each.name: each.read_text() for each in tmp_path.rglob("*") if each.is_file()}
    assert any("pwned" in each for each in texts.values())
    for name, text in texts.items():
        command = IN_JSON if name in EXACT else COMMAND
        assert command.findall(text) == [], name


def test_yaml_with_hostile_texts_is_read_as_the_same():
    """Texts are escaped in quotes, so that no value changes, wherever a long line is folded."""
    value = {EVIL: {"a": [EVIL, f"{'word ' * 30}::error::pwned {'word ' * 30}", " ::a", "\u2028b"]}}
    text = to_yaml(value)
    assert yaml.safe_load(text) == value
    assert not COMMAND.search(text)
    assert not re.search(r"^\s*::", text, re.MULTILINE)
