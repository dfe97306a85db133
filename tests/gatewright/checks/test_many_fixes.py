"""`--fix` of many fields in one text: how often the text is parsed does not grow with them."""

import pytest

from config import positions
from config.documents import parse_documents
from gatewright.checks import fixed_text
from gatewright.checks.fixed_text import FixedText

ITEM = "- {name: c%d, a: 1}\n"
FIELDS = ("a", "b", "c")  # `b` and `c` are added


class CountedText(FixedText):
    """Counts how often it is parsed."""

    parses = 0

    def _parse(self, text):
        self.parses += 1
        return super()._parse(text)


def change(text, paths):
    """Set fields to 2; return the changed text."""
    documents = list(parse_documents(text.encode(), "x.yaml"))
    changed = CountedText(text, "x.yaml")
    fixes = [(documents[at], {"op": "add", "path": path, "value": 2}) for at, path in paths]
    assert changed.change(fixes) == 0
    return changed


@pytest.mark.parametrize("size", [10, 300])
def test_many_items_of_a_list_are_changed_at_once(size):
    """One text is parsed for each field of an item, and one for a field of the object itself."""
    text = "kind: A\nspec:\n  items:\n" + "".join(f"  {ITEM % at}" for at in range(size))
    paths = [(0, f"/spec/items/{at}/{field}") for at in range(size) for field in FIELDS]
    changed = change(text, [*paths, (0, "/spec/last")])
    (document,) = parse_documents(changed.text.encode(), "x.yaml")
    items = [{"name": f"c{at}", "a": 2, "b": 2, "c": 2} for at in range(size)]
    assert document.value["spec"] == {"items": items, "last": 2}
    assert (changed.parses, changed.count) == (1 + len(FIELDS), len(paths) + 1)


@pytest.mark.parametrize("size", [10, 100])
def test_objects_that_share_their_lists_by_aliases_are_changed_at_once(size):
    """An edit of the anchor is one edit of all aliases."""
    first = "- kind: A\n  list: &i\n" + "".join(f"  {ITEM % at}" for at in range(20))
    text = "kind: List\nitems:\n" + first + "- {kind: A, list: *i}\n" * (size - 1)
    paths = [(of, f"/list/{at}/{field}") for of in range(size) for at in range(20)
             for field in FIELDS]  # fmt: skip
    changed = change(text, paths)
    assert "*i" in changed.text
    assert all(
        item == {"name": f"c{at}", "a": 2, "b": 2, "c": 2}
        for document in parse_documents(changed.text.encode(), "x.yaml")
        for at, item in enumerate(document.value["list"])
    )
    assert (changed.parses, changed.count, changed.shared) == (1 + len(FIELDS), len(paths), 0)


def test_changes_that_would_take_too_long_are_left_out(monkeypatch):
    """What is verified is bounded in bytes; the rest is counted."""
    text = "x: &x {a: 1}\n" + "".join(f"a{at}: *x\n" for at in range(40))
    paths = [(0, f"/a{at}/a") for at in range(40)]
    monkeypatch.setattr(fixed_text, "MAX_VERIFIED", 8 * len(text))
    changed = change(text, paths)
    assert changed.parses <= 1 + 8
    assert changed.count + changed.too_many == 40
    assert changed.too_many > 0
    monkeypatch.undo()
    assert change(text, paths).count == 40


def test_the_items_of_a_list_are_read_once_for_all_places():
    """Places of fields in a list of many items take one pass over it."""
    text = "kind: A\nlist:\n" + "".join(ITEM % at for at in range(200))
    (document,) = parse_documents(text.encode(), "x.yaml")
    before = positions._items_by.cache_info().misses
    assert [document.line(f"list[name=c{at}].a") for at in range(200)] == [*range(3, 203)]
    assert positions._items_by.cache_info().misses == before + 1
