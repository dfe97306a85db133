"""Ranges include both ends, and are formatted for messages."""

import pytest
from pydantic import ValidationError

from webhook.policies._ranges import Range, any_holds, format_ranges

PORTS = Range(minimum=8000, maximum=8999)
ONE = Range(minimum=443, maximum=443)


@pytest.mark.parametrize(
    ("number", "held"), [(7999, False), (8000, True), (8999, True), (9000, False), (443, True)]
)
def test_both_ends_are_within(number, held):
    """A number is valid if any range includes it."""
    assert any_holds([PORTS, ONE], number) is held


def test_an_empty_list_of_ranges_includes_nothing():
    """No number is valid."""
    assert not any_holds([], 0)


def test_ranges_are_formatted():
    """A range of one number is printed as that number."""
    assert (format_ranges([PORTS, ONE]), format_ranges([])) == ("8000-8999, 443", "none")


@pytest.mark.parametrize("ends", [(2, 1), (-1, 1), ("1", 2), (True, 2)])
def test_ends_are_in_order(ends):
    """Ends are integers from 0."""
    with pytest.raises(ValidationError):
        Range(minimum=ends[0], maximum=ends[1])
