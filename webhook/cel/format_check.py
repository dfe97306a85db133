"""Check the clauses of a constant format string against the types of its arguments."""

import re

from webhook.cel.types import Type

_CLAUSE = re.compile(r"%(?:%|(?:\.\d*)?(.?))", re.DOTALL)
_INTEGERS, _DOUBLES = frozenset({"int", "uint"}), frozenset({"double", "string"})
_TEXTS = {"string", "bool", "bytes", "double", "map", "list", "type", "duration", "timestamp", "null_type"}
_VERBS: dict[str, frozenset[str]] = {
    "s": _INTEGERS | _TEXTS,
    "d": _INTEGERS,
    "o": _INTEGERS,
    "f": _DOUBLES,
    "e": _DOUBLES,
    "b": _INTEGERS | {"bool"},
    **dict.fromkeys("xX", _INTEGERS | {"string", "bytes"}),
}


def format_fault(text: str, types: list[Type]) -> tuple[int | None, str] | None:
    """Return which argument is wrong (None for all of them) and why; None where `string.format` can take them."""
    verbs = [match[1] for match in _CLAUSE.finditer(text) if match[0] != "%%"]
    for position, verb in enumerate(verbs):
        if position >= len(types):
            return None, f"index {position} out of range"
        if verb not in _VERBS:
            return None, f'could not parse formatting clause: unrecognized formatting clause "{verb}"'
        found = types[position].name
        if found != "dyn" and found not in _VERBS[verb]:
            allowed = ", ".join(sorted(_VERBS[verb]))
            return position, f"error during formatting: %{verb} is for {allowed}; was given {types[position]}"
    if len(types) > len(verbs):
        return None, f"too many arguments supplied to string.format (expected {len(verbs)}, got {len(types)})"
    return None
