"""When an apply would surely change nothing."""

from collections.abc import Callable

import pytest

from controller.runtime.applied import Applied
from tests.controller.runtime.conftest import CONFIGMAP, Object

KEY = "default/a"
DESIRED: Object = {"metadata": {"name": "a"}, "data": {"size": "1"}}


def stored(version: int, **data: str) -> Object:
    """The object as the cache has it."""
    return {"metadata": {"name": "a", "uid": "1", "resourceVersion": str(version)}, "data": {"size": "1", **data}}


class Before:
    """What an earlier process applied, and how often that was asked."""

    def __init__(self, fields: bytes | None) -> None:
        self.asked = 0
        self._fields = fields

    def __call__(self) -> bytes | None:
        """Answer, and count."""
        self.asked += 1
        return self._fields


@pytest.fixture
def is_right() -> Callable[[Object, Before], bool]:
    """The question, of a process that has just started."""
    applied = Applied()
    return lambda now, before: applied.is_right(CONFIGMAP, KEY, now, DESIRED, before)


def test_what_an_earlier_process_applied_is_compared_once_a_version(
    is_right: Callable[[Object, Before], bool],
) -> None:
    """What others add to it is no reason to apply; what they take is."""
    before = Before(b"")
    assert is_right(stored(1), before)
    assert is_right(stored(1), before)
    assert before.asked == 1
    assert is_right(stored(2, other="x"), before)
    assert before.asked == 2
    assert not is_right(stored(3, size="2"), before)


def test_nothing_is_sure_of_what_nobody_knows_to_be_applied(is_right: Callable[[Object, Before], bool]) -> None:
    """The parent was not seen to since it changed."""
    assert not is_right(stored(1), Before(None))


def test_an_answer_to_an_apply_is_known_again() -> None:
    """Whatever an earlier process did does not matter then; whatever people change does."""
    applied, before = Applied(), Before(None)
    applied.remember(CONFIGMAP, KEY, DESIRED, stored(1))
    assert applied.is_right(CONFIGMAP, KEY, stored(1), DESIRED, before)
    assert applied.is_right(CONFIGMAP, KEY, stored(2) | {"status": {"x": 1}}, DESIRED, before)
    assert applied.was_right(CONFIGMAP, KEY, stored(3, other="x"), DESIRED)
    assert not applied.is_right(CONFIGMAP, KEY, stored(3, other="x"), DESIRED, before)
    assert not applied.is_right(CONFIGMAP, KEY, stored(2), DESIRED | {"data": {"size": "2"}}, before)
    applied.forget(CONFIGMAP, KEY)
    assert not applied.is_right(CONFIGMAP, KEY, stored(2), DESIRED, before)
    assert before.asked == 1
