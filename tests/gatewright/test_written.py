"""YAML as a person would write it."""

import yaml

from gatewright.written import written


def test_what_stands_twice_is_written_twice() -> None:
    """No anchor, no alias."""
    labels = {"app": "shop"}
    assert written({"selector": labels, "labels": labels}) == "selector:\n  app: shop\nlabels:\n  app: shop\n"


def test_lines_stay_lines() -> None:
    """A text of several lines is a block, and reads back as it was."""
    object = {"script": "set -e\necho 'größer'\n", "schedule": "0 2 * * *", "version": "17", "empty": ""}
    text = written(object)
    assert text.startswith("script: |\n  set -e\n  echo 'größer'\n")
    assert yaml.safe_load(text) == object


def test_keys_are_sorted_where_that_is_asked_for() -> None:
    """For a comparison; else they stay as they were."""
    assert written({"b": 1, "a": 2}) == "b: 1\na: 2\n"
    assert written({"b": 1, "a": 2}, sort_keys=True) == "a: 2\nb: 1\n"
