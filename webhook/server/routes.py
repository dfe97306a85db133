"""Which hook a path is for, and how long the API server waits for the answer."""

import re
from functools import lru_cache
from typing import NamedTuple

HOOKS = {"/validate": "validate", "/mutate": "mutate", "/convert": "convert"}
DEFAULT_SECONDS = 10.0  # timeoutSeconds of a webhook configuration that names none
DEADLINE_SHARE = 0.9  # the rest of the time is for the way back
TIMEOUT = re.compile(r"[?&]timeout=(\d{1,6}(?:\.\d{1,9})?)(ms|s|m)(?:&|$)")
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0}


class Route(NamedTuple):
    """What a path asks for."""

    hook: str
    seconds: float
    """How long answering may take."""


@lru_cache(maxsize=256)
def route_of(raw_path: str) -> Route | None:
    """Return the route of a path: /validate, /mutate or /convert, or one followed by -<anything>; None for others."""
    path = raw_path.partition("?")[0]
    prefix, dash, rest = path.partition("-")
    hook = HOOKS.get(prefix) if "/" not in rest and (rest or not dash) else None
    return None if hook is None else Route(hook, _seconds(raw_path))


def _seconds(raw_path: str) -> float:
    """Return the seconds that the API server waits for this request (`?timeout=3s`), less a share for the way back."""
    found = TIMEOUT.search(raw_path)
    seconds = float(found[1]) * UNITS[found[2]] if found else 0.0
    return (seconds or DEFAULT_SECONDS) * DEADLINE_SHARE
