"""Built-in policies that decide the same as rules of Kyverno: the table of builtin.yaml."""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from webhook.policy_sets.catalogue import catalogue

FILE = Path(__file__).parent / "builtin.yaml"
WORD = re.compile(r"[A-Za-z]*[._/][\w./-]+|[A-Za-z]\w*")
GLOB = re.compile(r"[A-Za-z?*][\w.?*-]*")
KEY = re.compile(r"[\w./-]+")
RANGE = re.compile(r"(\d+)-(\d+)")
# Keys of volumes that are not types; "" stands for a pod without volumes.
NOT_TYPES = ["", "name"]


@cache
def table() -> list[dict[str, Any]]:
    """Return the rows: a policy, its parameters, and the tests of a rule."""
    rows: list[dict[str, Any]] = yaml.safe_load(FILE.read_text())
    return rows


def builtin_policy(
    validate: Mapping[str, Any], kinds: Iterable[str], of_pods: bool
) -> dict[str, Any] | None:
    """Return `policy` and `params` that decide the same; None if no policy is known to.

    `of_pods`: whether the rule is about pods and, through generated rules, their templates.
    """
    tests = {key: each for key, each in validate.items() if key in ("pattern", "deny", "foreach")}
    for row in table():
        bound: dict[str, Any] = {}
        if not _is_like(row["tests"], tests, bound):
            continue
        params = {
            key: bound[param] if isinstance(param, str) and param in bound else param
            for key, param in row.get("params", {}).items()
        }
        policy = catalogue()[row["policy"]]
        if of_pods and "where" in policy.params.model_fields:
            params["where"] = "pods"
        judged = {target.kind.kind for target in policy.targets}
        with suppress(ValueError):
            policy.params.model_validate(params)
            if judged.issuperset(kinds):
                return {"policy": policy.name, "params": params}
    return None


def _is_like(template: Any, given: Any, bound: dict[str, Any]) -> bool:
    """Return whether a rule has the tests of a template; add the values of `$…` to `bound`."""
    if isinstance(template, str) and template.startswith("$"):
        value = _READERS[template](given)
        return bool(value) and bound.setdefault(template, value) == value
    if isinstance(template, dict) and isinstance(given, dict):
        same = template.keys() == given.keys()
        return same and all(_is_like(template[key], given[key], bound) for key in template)
    if isinstance(template, list) and isinstance(given, list):
        same = len(template) == len(given)
        return same and all(map(_is_like, template, given, [bound] * len(given)))
    return _plain(template) == _plain(given)


def _plain(value: Any) -> str:
    """Return a scalar as text without blanks, with the names in [a, b] sorted."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = re.sub(r"\s+", "", str(value))
    return re.sub(r"\[([\w,]+)\]", lambda match: str(sorted(match[1].split(","))), text)


def _words(given: Any) -> list[str] | None:
    words = given if isinstance(given, list) else str(given).replace(" ", "").split("|")
    words = [each for each in words if each != ""]
    # In built-in policies, ALL means every capability.
    is_plain = all(isinstance(e, str) and WORD.fullmatch(e) and e != "ALL" for e in words)
    return words if is_plain else None


def _types(given: Any) -> list[str] | None:
    if not isinstance(given, list) or not set(NOT_TYPES) <= {*map(str, given)}:
        return None
    return _words([each for each in given if each not in NOT_TYPES])


def _range(given: Any) -> list[dict[str, int]] | None:
    match = RANGE.fullmatch(str(given))
    return [{"minimum": int(match[1]), "maximum": int(match[2])}] if match else None


def _globs(given: Any) -> dict[str, str] | None:
    if not isinstance(given, dict):
        return None
    is_plain = all(
        KEY.fullmatch(key) and isinstance(pattern, str) and GLOB.fullmatch(pattern)
        for key, pattern in given.items()
    )
    return given if is_plain else None


_READERS = {"$words": _words, "$types": _types, "$range": _range, "$globs": _globs}
