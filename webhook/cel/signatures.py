"""Signatures of functions, such as `(string).charAt(int) -> string`."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from webhook.cel.types import DYN, Type, assignable, parse_type, split, substituted


class Signature(NamedTuple):
    """One version of a function: the types of its arguments (a target first) and of its result.

    The last argument of a variadic one can repeat.
    """

    name: str
    params: tuple[Type, ...]
    result: Type
    is_member: bool
    is_variadic: bool

    def types(self, count: int) -> tuple[Type, ...] | None:
        """Return the types of `count` arguments, None where it does not take as many."""
        if self.is_variadic and count > len(self.params):
            return self.params + self.params[-1:] * (count - len(self.params))
        return self.params if len(self.params) == count else None

    @property
    def takes(self) -> str:
        """What it is applied to, as messages write it."""
        shown = applied(self.params, is_member=self.is_member)
        return f"{shown[:-1]}...)" if self.is_variadic else shown


_VERSIONS = {  # names in signatures that stand for several types, one version for each
    "N": ("int", "uint", "double"),
    "M": ("int", "uint", "double"),
    "I": ("int", "uint"),
    "C": ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration"),
}
_SIGNATURE = re.compile(r"(?:\((?P<target>.+)\)\.(?=\w))?(?P<name>[^()]+)\((?P<params>.*)\) -> (?P<result>.+)")


def parse_signature(text: str) -> list[Signature]:
    """Return the signatures that `text` says.

    N, M, I and C are several types, with one signature for each; `?` marks an argument that can be left out, `...` one
    that can repeat.
    """
    letter = next((each for each in _VERSIONS if re.search(rf"\b{each}\b", text)), None)
    if letter is not None:
        versions = (re.sub(rf"\b{letter}\b", type_, text) for type_ in _VERSIONS[letter])
        return [signature for version in versions for signature in parse_signature(version)]
    match = _SIGNATURE.fullmatch(text)
    assert match is not None, text
    params = [*([match["target"]] if match["target"] else []), *split(match["params"])]
    types, result = [parse_type(each.strip("?.")) for each in params], parse_type(match["result"])
    return [
        Signature(match["name"], tuple(types[:count]), result, bool(match["target"]), match["params"].endswith("..."))
        for count in range(sum(not each.startswith("?") for each in params), len(params) + 1)
    ]


def applied(types: Sequence[Type], *, is_member: bool) -> str:
    """Return how messages write arguments of these types."""
    shown = ", ".join(map(str, types[1:] if is_member else types))
    return f"{types[0]}.({shown})" if is_member else f"({shown})"


def result_type(signatures: Sequence[Signature], types: Sequence[Type], bound: dict[str, Type]) -> Type | None:
    """Return the type of the result for arguments of these types, dyn where several fit; None where none fits.

    `bound` has the type parameters that are known before.
    """
    results = []
    for signature in signatures:
        wanted, known = signature.types(len(types)), dict(bound)
        if wanted is not None and all(assignable(*pair, known) for pair in zip(wanted, types, strict=True)):
            results.append(substituted(signature.result, known))
    return next((each if results.count(each) == len(results) else DYN for each in results), None)
