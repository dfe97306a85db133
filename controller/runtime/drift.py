"""Whether a child still is what was asked for, judged without asking the API server.

Two questions, because the server changes what it stores (defaults, quantities, other people's fields):
`covers` compares a stored object with what we want of it, for a child that this process has not written yet;
`fingerprint` recognizes the server's own answer to our last apply, whatever that was.
"""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import orjson

from controller.runtime.claims import Claims, is_wanted, of_item
from controller.runtime.plan import Object

NOTHING: Mapping[str, Claims | None] = {}
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


def covers(stored: Any, desired: Any, field: str = "", claims: Claims | None = None) -> bool:
    """Tell whether a stored value has all that is desired, and nothing that we claim and desire no more.

    What the server or others added does not matter. What is claimed is stored, so what is stored just as desired is
    fine.
    """
    return bool(stored == desired) or _covers_other(stored, desired, field, claims)


def _covers_other(stored: Any, desired: Any, field: str, claims: Claims | None) -> bool:
    """Tell it of a value that is not just the same; every child is asked after a start, hence no generators."""
    if not desired and desired in (None, {}, []):
        return claims is None
    if isinstance(desired, dict):
        return isinstance(stored, dict) and _covers_object(stored, desired, field, claims)
    if isinstance(desired, list):
        return isinstance(stored, list) and _covers_list(stored, desired, claims)
    return False


def _covers_object(stored: Object, desired: Object, field: str, claims: Claims | None) -> bool:
    has_more = len(stored) > len(desired)
    if has_more and field in ATOMIC:
        return False
    is_same = _same_quantity if field in QUANTITIES else _covers_other
    claimed = claims.fields if claims else NOTHING
    for key, value in desired.items():
        if key not in stored:
            return False
        its = stored[key]
        if its != value and not is_same(its, value, key, claimed.get(key)):
            return False
    if has_more:
        for key in claimed:
            if key not in desired:
                return False
    return True


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


def _covers_list(stored: list[Any], desired: list[Any], claims: Claims | None) -> bool:
    if claims is not None and not is_wanted(claims, desired):
        return False
    if all(isinstance(each, dict) and "name" in each for each in desired):
        named = {each.get("name"): each for each in stored if isinstance(each, dict)}
        stored = [named.get(each["name"]) for each in desired]
    if len(stored) != len(desired):
        return False
    for its, wanted in zip(stored, desired, strict=True):
        if its != wanted and not _covers_other(its, wanted, "", claims and of_item(claims, wanted)):
            return False
    return True


def _shape(stored: Object, desired: Object) -> Object:
    """Cut a stored value down to the keys that are desired."""
    shape = {}
    for key, value in desired.items():
        its = stored.get(key)
        shape[key] = _shape(its, value) if isinstance(value, dict) and isinstance(its, dict) else its
    return shape


def _same_quantity(stored: Any, desired: Any, field: str, claims: Claims | None) -> bool:
    """Compare quantities as numbers: the server stores `1000m` as `1`."""
    del field, claims
    return bool(stored == desired) or _number(stored) == _number(desired)


def _number(quantity: Any) -> Decimal | str:
    match = QUANTITY.fullmatch(str(quantity))
    return Decimal(match[1]) * SUFFIXES[match[2] or ""] if match else str(quantity)
