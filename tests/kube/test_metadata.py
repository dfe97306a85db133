"""Metadata with wrong JSON types: lists and watches omit these fields."""

import orjson
import pytest

from kube.errors import ServerError
from kube.metadata import is_identified, well_typed
from kube.page import ListPage
from kube.resource import Resource
from kube.watch import event_in

WIDGET = Resource("example.com", "v1", "widgets", "Widget")
GOOD = {"name": "a", "namespace": "b", "uid": "c", "resourceVersion": "1"}
OWNER = {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1"}
WRONG = {
    "labels": {"a": 1},
    "annotations": ["a"],
    "finalizers": [None],
    "ownerReferences": [{**OWNER, "uid": 1}],
    "generation": "3",
    "deletionTimestamp": 7,
}
RIGHT = {
    "labels": {"a": "b"},
    "annotations": {},
    "finalizers": ["a"],
    "ownerReferences": [OWNER],
    "generation": 3,
    "deletionTimestamp": "soon",
}


def test_only_fields_of_a_wrong_type_are_left_out() -> None:
    """Both lists and watches drop these fields."""
    for metadata, kept in ((GOOD | WRONG, GOOD), (GOOD | RIGHT, GOOD | RIGHT)):
        page = {"kind": "WidgetList", "metadata": {}, "items": [{"metadata": metadata, "x": 1}]}
        (listed,) = ListPage(WIDGET, orjson.dumps(page))
        event = {"type": "ADDED", "object": {"metadata": metadata, "x": 1}}
        kind, watched = event_in(orjson.dumps(event))
        assert (listed["metadata"], kind, watched) == (kept, "ADDED", {"metadata": kept, "x": 1})
    assert well_typed({"metadata": "none"}) == {"metadata": {}}


@pytest.mark.parametrize(
    "metadata", [{key: GOOD[key] for key in GOOD if key != absent} for absent in GOOD]
)
def test_an_object_has_a_name_a_namespace_a_uid_and_a_version(
    metadata: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """An object without one of them is skipped, with a log line."""
    assert is_identified(WIDGET, GOOD)
    assert not is_identified(WIDGET, metadata)
    assert not is_identified(WIDGET, {**GOOD, "resourceVersion": "9" * 5000})
    assert caplog.messages[0].startswith("a malformed Widget is skipped: ")


def test_a_bookmark_without_a_version_is_no_event() -> None:
    """The watch fails and begins again, with back-off."""
    with pytest.raises(ServerError, match="not an event"):
        event_in(orjson.dumps({"type": "BOOKMARK", "object": {"metadata": {}}}))
