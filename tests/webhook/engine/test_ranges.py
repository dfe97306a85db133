"""Ranges hold both of their ends, and are told as a person would."""

import pytest
from pydantic import ValidationError

from webhook.engine.ranges import Range, any_holds, listed

PORTS = Range(minimum=8000, maximum=8999)
ONE = Range(minimum=443, maximum=443)


@pytest.mark.parametrize(("number", "held"), [(7999, False), (8000, True), (8999, True), (9000, False), (443, True)])
def test_both_ends_are_within(number, held):
    """A number is held if any range holds it."""
    assert any_holds([PORTS, ONE], number) is held


def test_nothing_is_within_no_ranges():
    """Of no ranges, none holds anything."""
    assert not any_holds([], 0)


def test_ranges_are_told():
    """A range of one number is that number."""
    assert (listed([PORTS, ONE]), listed([])) == ("8000-8999, 443", "none")


@pytest.mark.parametrize("ends", [(2, 1), (-1, 1), ("1", 2), (True, 2)])
def test_ends_in_order(ends):
    """Ends are whole numbers, from 0, in order."""
    with pytest.raises(ValidationError):
        Range(minimum=ends[0], maximum=ends[1])
