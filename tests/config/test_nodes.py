"""libyaml's parser and PyYAML's own produce the same values on the same lines."""

from pathlib import Path

import pytest
import yaml

from config import nodes

ROOT = Path(__file__).parents[2]
FILES = [
    "config/samples/production-store.yaml",
    "tests/policies/image_tags.yaml",
    "config/policies/production.yaml",
]
TRICKY = """\
%YAML 1.1
---
&a a : [1, {b: "two
  lines", c: 'it''s'}, ~]   # a comment

? long
: |2-
   text: é

   - 1
empty:
folded: >+
  a
  b

"q\\u00fc": *a
<<: {d: !!str 5}
...
---
- - 1
  - 0x1F
-
"""


def lines(node: yaml.Node) -> object:
    """Return a node as plain values, with the lines of its parts."""
    at = node.start_mark.line
    if isinstance(node, yaml.ScalarNode):
        return node.tag, at if node.value else None, node.value
    if isinstance(node, yaml.SequenceNode):
        return node.tag, at, [lines(each) for each in node.value]
    return node.tag, at, [(lines(key), lines(value)) for key, value in node.value]


@pytest.mark.skipif(not yaml.__with_libyaml__, reason="PyYAML was built without libyaml")
@pytest.mark.parametrize(
    "text", [TRICKY, *((ROOT / file).read_text() for file in FILES)], ids=["tricky", *FILES]
)
def test_both_parsers_agree(text, monkeypatch):
    """Tags, values and lines are equal, except lines of empty nodes."""
    quick = [lines(each) for each in nodes.compose(text)]
    monkeypatch.setattr(nodes, "_quick", nodes._PlainLoader)
    assert quick == [lines(each) for each in nodes.compose(text)]


def test_parsing_works_without_libyaml(monkeypatch):
    """PyYAML without it is slower and gives the same result."""
    monkeypatch.setattr(nodes, "_quick", nodes._PlainLoader)
    assert [nodes.construct(each) for each in nodes.compose("a: 1.0\n---\n1: b\n")] == [
        {"a": 1},
        {"1": "b"},
    ]
