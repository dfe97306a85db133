"""Hashes of lines, computed like those of GitHub's code scanning (`primaryLocationLineHash`).

The hash of a line covers the 100 characters from its start, including next lines, so it does not
change when the line moves. Source: the fingerprints that `github/codeql-action` adds to an upload.
"""

import re
import struct
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate

LENGTH = 100  # hashed characters: UTF-16 units without spaces and tabs
BASE, MODULUS = 37, 1 << 64  # of the polynomial with the characters as coefficients
SHIFTED = pow(BASE, LENGTH, MODULUS)
END = 0xFFFF  # follows the last character, before zeros
LINE_END, SPACES = re.compile(r"\r\n?"), re.compile(r"[ \t]+")


def line_hashes(text: str) -> list[str]:
    """Return a hash for each line, with its number of occurrences so far: `c129715d7a2bc9a3:1`."""
    counted = SPACES.sub("", LINE_END.sub("\n", text)).encode("utf-16-le", "surrogatepass")
    units = [*(unit for (unit,) in struct.iter_unpack("<H", counted)), END]
    return list(_number(units))


def _number(units: list[int]) -> Iterator[str]:
    sums = list(
        accumulate(
            [*units, *[0] * LENGTH], lambda total, unit: (total * BASE + unit) % MODULUS, initial=0
        )
    )
    counts = Counter[int]()
    for start in (0, *(index + 1 for index, unit in enumerate(units) if unit == ord("\n"))):
        line_hash = (sums[start + LENGTH] - sums[start] * SHIFTED) % MODULUS
        counts[line_hash] += 1
        yield f"{line_hash:x}:{counts[line_hash]}"
