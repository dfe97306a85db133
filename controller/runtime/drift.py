"""Whether a child still is what was asked for, judged without asking the API server.

Two questions, because the server changes what it stores (defaults, quantities, other people's fields):
`covers` compares a stored object with what we want of it, for a child that this process has not written yet;
`fingerprint` recognizes the server's own answer to our last apply, whatever that was.
"""

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import orjson

from controller.runtime.plan import Object

ATOMIC = frozenset({"selector", "matchLabels", "nodeSelector"})  # maps that one manager owns as a whole
QUANTITIES = frozenset({"requests", "limits"})
QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([numkMGTPE]|[KMGTPE]i)?")
SUFFIXES = {suffix: Decimal(1000) ** power for power, suffix in zip(range(-3, 0), "num", strict=True)}
SUFFIXES |= {suffix: Decimal(1000) ** power for power, suffix in enumerate(["", *"kMGTPE"])}
SUFFIXES |= {f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)}


def digest(value: Any) -> int:
    """Return a hash of a JSON value, of use in this process only; the order of keys does not matter."""
    return hash(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))


def fingerprint(stored: Object, desired: Object) -> int:
    """Hash what people can change of a stored object: all but its status, and of the metadata only what we want."""
    content = stored | {"metadata": _shape(stored["metadata"], desired["metadata"]), "status": None}
    return digest(content)


def covers(stored: Any, desired: Any, field: str = "") -> bool:
    """Tell whether a stored value has all that is desired; what the server or others added does not matter."""
    if stored == desired or (not desired and desired in (None, {}, [])):
        return True
    if isinstance(desired, dict):
        if not isinstance(stored, dict) or (field in ATOMIC and len(stored) != len(desired)):
            return False
        within = _same_quantity if field in QUANTITIES else covers
        for key, value in desired.items():  # every child is asked after a start: most values are just the same
            if key not in stored or (stored[key] != value and not within(stored[key], value, key)):
                return False
        return True
    if isinstance(desired, list):
        return isinstance(stored, list) and _covers_list(stored, desired)
    return False


def drifted(stored: Any, desired: Any, field: str = "", path: str = "") -> str:
    """Return the path of the first field that is not as desired; empty where there is none."""
    if covers(stored, desired, field):
        return ""
    within: Iterable[tuple[str, Any, Any, str]] = ()
    if isinstance(stored, dict) and isinstance(desired, dict):
        within = ((key, stored.get(key), value, f"{path}.{key}".lstrip(".")) for key, value in desired.items())
    elif isinstance(stored, list) and isinstance(desired, list):
        within = (("", *each, f"{path}[{place}]") for place, each in enumerate(zip(stored, desired, strict=False)))
    return next(filter(None, (drifted(its, wanted, key, its_path) for key, its, wanted, its_path in within)), path)


def _covers_list(stored: list[Any], desired: list[Any]) -> bool:
    if all(isinstance(each, dict) and "name" in each for each in desired):
        named = {each.get("name"): each for each in stored if isinstance(each, dict)}
        return all(each["name"] in named and covers(named[each["name"]], each) for each in desired)
    return len(stored) == len(desired) and all(map(covers, stored, desired))


def _shape(stored: Object, desired: Object) -> Object:
    """Cut a stored value down to the keys that are desired."""
    shape = {}
    for key, value in desired.items():
        its = stored.get(key)
        shape[key] = _shape(its, value) if isinstance(value, dict) and isinstance(its, dict) else its
    return shape


def _same_quantity(stored: Any, desired: Any, field: str) -> bool:
    """Compare quantities as numbers: the server stores `1000m` as `1`."""
    del field
    return bool(stored == desired) or _number(stored) == _number(desired)


def _number(quantity: Any) -> Decimal | str:
    match = QUANTITY.fullmatch(str(quantity))
    return Decimal(match[1]) * SUFFIXES[match[2] or ""] if match else str(quantity)
