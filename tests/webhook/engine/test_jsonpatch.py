"""Patches are minimal, have the right paths, and change nothing else."""

import copy
import time
from contextlib import suppress

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.webhook.asking import ask
from webhook.engine import Patch, WrongTypeError
from webhook.engine.jsonpatch import Patcher, pointer, same
from webhook.engine.violation import UNSET


def patched(object, *patches):
    """Apply changes; return the patched object and the operations."""
    request = ask(object)
    patcher = Patcher(request)
    for patch in patches:
        patcher.apply([patch])
    return request.object, patcher.operations


@pytest.mark.parametrize(
    ("object", "patches", "operations"),
    [
        pytest.param(
            {"spec": {}},
            [Patch(("spec", "a"), 1)],
            [{"op": "add", "path": "/spec/a", "value": 1}],
            id="a missing field is added",
        ),
        pytest.param(
            {"spec": {"a": None}},
            [Patch(("spec", "a"), 1)],
            [{"op": "add", "path": "/spec/a", "value": 1}],
            id="null is missing",
        ),
        pytest.param(
            {"spec": {"a": 0}}, [Patch(("spec", "a"), 1)], [], id="a set value stays, zero included"
        ),
        pytest.param(
            {"a": False}, [Patch(("a",), True)], [], id="a set value stays, false included"
        ),
        pytest.param(
            {"a": ""}, [Patch(("a",), "x")], [], id="a set value stays, the empty string included"
        ),
        pytest.param(
            {"a": "me"},
            [Patch(("a",), "us", overwrite=True)],
            [{"op": "replace", "path": "/a", "value": "us"}],
            id="overwriting replaces",
        ),
        pytest.param(
            {"a": "us"},
            [Patch(("a",), "us", overwrite=True)],
            [],
            id="overwriting with the same is nothing",
        ),
        pytest.param(
            {"a": True},
            [Patch(("a",), 1, overwrite=True)],
            [{"op": "replace", "path": "/a", "value": 1}],
            id="1 is not true",
        ),
        pytest.param(
            {"a": [{"b": 1}]},
            [Patch(("a",), [{"b": True}], overwrite=True)],
            [{"op": "replace", "path": "/a", "value": [{"b": True}]}],
            id="1 is not true, at any depth",
        ),
        pytest.param({}, [Patch(("a",), None)], [], id="null on nothing is nothing"),
        pytest.param(
            {"spec": {}},
            [Patch(("spec", "securityContext", field), field) for field in ("a", "b", "c")],
            [
                {
                    "op": "add",
                    "path": "/spec/securityContext",
                    "value": {"a": "a", "b": "b", "c": "c"},
                }
            ],
            id="three fields below a missing parent are one operation",
        ),
        pytest.param(
            {"spec": {"securityContext": None}},
            [Patch(("spec", "securityContext", field), field) for field in ("a", "b")],
            [{"op": "add", "path": "/spec/securityContext", "value": {"a": "a", "b": "b"}}],
            id="a null parent is created",
        ),
        pytest.param(
            {},
            [Patch(("a", "b", "c"), 1), Patch(("a", "b", "d"), 2), Patch(("a", "e"), 3)],
            [{"op": "add", "path": "/a", "value": {"b": {"c": 1, "d": 2}, "e": 3}}],
            id="parents of parents are created",
        ),
        pytest.param(
            {"a": {"x": 0}},
            [Patch(("a", "b"), 1), Patch(("a", "c"), 2)],
            [{"op": "add", "path": "/a/b", "value": 1}, {"op": "add", "path": "/a/c", "value": 2}],
            id="an existing parent is not replaced",
        ),
        pytest.param(
            {"metadata": {"labels": {}}},
            [Patch(("metadata", "labels", "a/b~c"), "d")],
            [{"op": "add", "path": "/metadata/labels/a~1b~0c", "value": "d"}],
            id="slash and tilde are escaped",
        ),
        pytest.param(
            {"containers": [{"name": "a"}, {"name": "b"}]},
            [Patch(("containers", 1, "image"), "x")],
            [{"op": "add", "path": "/containers/1/image", "value": "x"}],
            id="items have their index",
        ),
        pytest.param(
            {"items": [None, 2]},
            [Patch(("items", 0), 1)],
            [{"op": "replace", "path": "/items/0", "value": 1}],
            id="an item that is null is replaced, not pushed aside",
        ),
        pytest.param(
            {"items": [None, 2]},
            [Patch(("items", 0, "a"), 1)],
            [{"op": "replace", "path": "/items/0", "value": {"a": 1}}],
            id="a null item is replaced when a field below it is set",
        ),
        pytest.param(
            {"a": 1},
            [Patch(("a",), 2, overwrite=True), Patch(("a",), 1, overwrite=True)],
            [],
            id="a value that is set back is no operation",
        ),
        pytest.param(
            {"b": 1, "a": {"c": 1, "d": 2}},
            [
                Patch(("a", "d"), 3, overwrite=True),
                Patch(("a", "c"), UNSET, overwrite=True),
                Patch(("b",), 2, True),
            ],
            [
                {"op": "replace", "path": "/a/d", "value": 3},
                {"op": "remove", "path": "/a/c"},
                {"op": "replace", "path": "/b", "value": 2},
            ],
            id="operations are in the order of the patches",
        ),
    ],
)
def test_operations(object, patches, operations):
    """These are the only operations, and applying them gives the patched object."""
    before = copy.deepcopy(object)
    after, found = patched(object, *patches)
    assert found == operations
    assert jsonpatch.apply_patch(before, found) == after


@pytest.mark.parametrize(
    ("patch", "path", "found", "wanted"),
    [
        (Patch(("metadata", "labels", "a"), 1), "metadata.labels", "a list", "an object"),
        (Patch(("metadata", "name", "a"), 1), "metadata.name", '"it" is a string', "an object"),
        (Patch(("metadata", 0), 1), "metadata", "an object", "a list"),
    ],
)
def test_a_parent_of_the_wrong_type_is_an_error(patch, path, found, wanted):
    """Nothing is replaced to make room for a field."""
    patcher = Patcher(ask({"metadata": {"labels": [], "name": "it"}}))
    with pytest.raises(WrongTypeError) as told:
        patcher.apply([patch])
    assert (told.value.path, told.value.found, told.value.wanted) == (path, found, wanted)
    assert patcher.operations == []


@pytest.mark.parametrize("path", [("items", 1), ("items", 1, "a"), ("none", 0), ("none", 0, "a")])
def test_a_missing_item_cannot_be_set(path):
    """A list does not grow: a missing item is an error of the policy."""
    patcher = Patcher(ask({"items": [1]}))
    with pytest.raises(LookupError):
        patcher.apply([Patch(path, 1)])
    assert patcher.operations == []


def test_a_policys_constant_is_never_changed():
    """A value that a policy sets is copied before fields are set below it."""
    constant = {"drop": ["ALL"]}
    after, operations = patched(
        {},
        Patch(("context", "capabilities"), constant),
        Patch(("context", "capabilities", "add"), ["NET_BIND_SERVICE"]),
        Patch(("context", "capabilities"), constant, overwrite=True),
        Patch(("context", "capabilities", "more"), 1),
    )
    assert constant == {"drop": ["ALL"]}
    assert after == {"context": {"capabilities": {"drop": ["ALL"], "more": 1}}}
    assert jsonpatch.apply_patch({}, operations) == after


def test_setting_returns_whether_it_changed_anything():
    """True for a change, False for none."""
    patcher = Patcher(ask({"a": 1}))
    patches = [Patch(("a",), 2), Patch(("b",), 2), Patch(("b",), 2)]
    assert [patcher.apply([patch]) for patch in patches] == [False, True, False]


KEYS = st.sampled_from(["a", "b", "c/d", "e~f", "0", ""])
SCALARS = st.none() | st.booleans() | st.integers(-1, 1) | st.sampled_from(["", "x", "/~"])
VALUES = st.recursive(
    SCALARS,
    lambda below: st.lists(below, max_size=2) | st.dictionaries(KEYS, below, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
PATHS = st.lists(KEYS | st.integers(0, 1), min_size=1, max_size=4).filter(
    lambda path: isinstance(path[0], str)
)
PATCHES = st.lists(st.builds(Patch, PATHS.map(tuple), VALUES, st.booleans()), max_size=8)


@given(st.data())
def test_a_policys_patches_are_applied_together_or_not_at_all(data):
    """After an error, the operations and the object are unchanged, and later policies see no part of the patch."""
    object, patches, later = data.draw(OBJECTS), data.draw(PATCHES), data.draw(PATCHES)
    request, alone = ask(copy.deepcopy(object)), ask(copy.deepcopy(object))
    patcher, other = Patcher(request), Patcher(alone)
    with pytest.raises((WrongTypeError, LookupError)):
        patcher.apply(
            [
                *patches,
                Patch(("metadata",), {}),
                Patch(("metadata", "x"), {}),
                Patch(("metadata", 0), 1),
            ]
        )
    for each, of in ((patcher, request), (other, alone)):
        with suppress(WrongTypeError, LookupError):
            each.apply(later)
        assert same(jsonpatch.apply_patch(object, each.operations), of.object)
    assert (patcher.operations, request.object) == (other.operations, alone.object)


@given(OBJECTS, PATCHES)
def test_operations_reproduce_the_object(object, patches):
    """In any order of changes, applying the operations gives the same object; the values of patches are not changed."""
    before, values = copy.deepcopy(object), copy.deepcopy([patch.value for patch in patches])
    request = ask(object)
    patcher = Patcher(request)
    done = []
    for patch in patches:
        try:
            if patcher.apply([patch]):
                done.append(patch)
        except (WrongTypeError, LookupError):
            continue
    assert same(jsonpatch.apply_patch(before, patcher.operations), request.object)
    assert same([patch.value for patch in patches], values)
    roots = {pointer(patch.path[:1]) for patch in done}
    assert {f"/{operation['path'].split('/')[1]}" for operation in patcher.operations} <= roots
    assert len(patcher.operations) <= len(done)


@given(
    OBJECTS,
    st.dictionaries(PATHS.map(tuple), VALUES.filter(lambda value: value is not None), max_size=4),
)
def test_a_second_run_has_no_operations(object, defaults):
    """Defaults that are already set cause no operations."""
    request = ask(object)
    patcher = Patcher(request)
    held = []
    for path, value in defaults.items():
        try:
            patcher.apply([patch := Patch(path, value)])
        except (WrongTypeError, LookupError):
            continue
        held.append(patch)
    second = ask(request.object)
    again = Patcher(second)
    assert [again.apply([patch]) for patch in held] == [False] * len(held)
    assert (again.operations, second.object) == ([], request.object)


@given(OBJECTS, PATHS.map(tuple), VALUES)
def test_only_the_named_path_changes(object, path, value):
    """A change affects its path and missing parents, and no other field."""
    patcher = Patcher(ask(object))
    try:
        patcher.apply([Patch(path, value, overwrite=True)])
    except (WrongTypeError, LookupError):
        return
    for operation in patcher.operations:
        assert (pointer(path) + "/").startswith(operation["path"] + "/")
    assert len(patcher.operations) <= 1


def test_thousands_of_patches_are_fast():
    """The cost of a change does not grow with the number of fields, missing parents and list items."""
    items = [{"name": str(number), "drop": ["a"]} for number in range(4000)]
    patches = [
        patch
        for index in range(len(items))
        for patch in (
            Patch(("items", index, "limits", "cpu"), "1"),
            Patch(("items", index, "limits", "memory"), "1"),
            Patch(("items", index, "drop"), ["a", "b"], overwrite=True),
        )
    ]
    started = time.process_time()
    object, operations = patched({"items": items}, *patches)
    assert object["items"][-1] == {
        "name": "3999",
        "drop": ["a", "b"],
        "limits": {"cpu": "1", "memory": "1"},
    }
    assert len(operations) == 2 * 4000
    assert time.process_time() - started < 2.0
