"""Rules of Kyverno's library that built-in policies replace, recognized by what they test."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Known(NamedTuple):
    """A built-in policy with parameters, and what differs."""

    policy: str
    params: dict[str, Any]
    notes: tuple[str, ...] = ()


def known_rule(validate: Mapping[str, Any]) -> Known | None:
    """Return the built-in policy that tests the same; None where there is none."""
    return None
