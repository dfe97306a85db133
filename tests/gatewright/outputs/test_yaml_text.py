"""Objects formatted as hand-written YAML."""

import yaml

from config.documents import parse_documents
from gatewright.outputs.yaml_text import to_yaml


def test_repeated_values_are_written_in_full() -> None:
    """No anchors and no aliases."""
    labels = {"app": "shop"}
    assert (
        to_yaml({"selector": labels, "labels": labels})
        == "selector:\n  app: shop\nlabels:\n  app: shop\n"
    )


def test_multi_line_text_is_a_block() -> None:
    """It parses to the same text."""
    object = {
        "script": "set -e\necho 'größer'\n",
        "schedule": "0 2 * * *",
        "version": "17",
        "empty": "",
    }
    text = to_yaml(object)
    assert text.startswith("script: |\n  set -e\n  echo 'größer'\n")
    assert yaml.safe_load(text) == object


def test_keys_are_sorted_on_request() -> None:
    """Otherwise they keep their order."""
    assert to_yaml({"b": 1, "a": 2}) == "b: 1\na: 2\n"
    assert to_yaml({"b": 1, "a": 2}, sort_keys=True) == "a: 2\nb: 1\n"


def test_written_yaml_is_read_as_the_same_text() -> None:
    """Kubectl reads some plain words as booleans or numbers."""
    texts = ["y", "N", "1e3", "0o7", "089", "1_0", ".inf", "~", "", "plain", "22:22"]
    (document,) = parse_documents(to_yaml(dict.fromkeys(texts, texts)).encode(), "x.yaml")
    assert document.value == dict.fromkeys(texts, texts)
