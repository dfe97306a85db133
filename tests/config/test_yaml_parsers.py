"""libyaml's parser and PyYAML's own produce the same values on the same lines."""

from pathlib import Path

import pytest
import yaml

from config import yaml_parsers
from config.documents import Document, parse_documents

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


def places(document: Document, value: object, path: str = "") -> dict[str, object]:
    """Return the values of a document with the line of each, by path."""
    found: dict[str, object] = {path: (value, document.place(path)[0])}
    items = value.items() if isinstance(value, dict) else ()
    for key, item in items:
        found |= places(document, item, f"{path}.{key}" if path else key)
    for index, item in enumerate(value if isinstance(value, list) else ()):
        found |= places(document, item, f"{path}[{index}]")
    return found


def parsed(text: str) -> list[dict[str, object]]:
    """Return the values and lines of all documents of a text."""
    return [places(each, each.value) for each in parse_documents(text.encode(), "x.yaml")]


@pytest.mark.skipif(not yaml.__with_libyaml__, reason="PyYAML was built without libyaml")
@pytest.mark.parametrize(
    "text", [TRICKY, *((ROOT / file).read_text() for file in FILES)], ids=["tricky", *FILES]
)
def test_both_parsers_agree(text, monkeypatch):
    """Values and lines are equal; without libyaml, parsing is only slower."""
    quick = parsed(text)
    monkeypatch.setattr(yaml_parsers, "quick", yaml_parsers.PlainParser)
    assert quick == parsed(text)
