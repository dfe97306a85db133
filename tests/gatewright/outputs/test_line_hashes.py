"""Hashes of lines are those that GitHub computes."""

import pytest

from gatewright.outputs.line_hashes import line_hashes

END = "c129715d7a2bc9a3:1"  # of the line after the last line's end


@pytest.mark.parametrize(
    ("text", "hashes"),
    [
        ("", [END]),
        (
            " a\nb\n  \t\tc\n d",
            [
                "271789c17abda88f:1",
                "54703d4cd895b18:1",
                "180aee12dab6264:1",
                "a23a3dc5e078b07b:1",
            ],
        ),
        (
            "Lorem ipsum dolor sit amet.\n" * 10,
            [
                *(f"a7f2ff13bc495cf2:{number}" for number in range(1, 7)),
                "a7f2ff1481e87703:1",
                "a9cf91f7bbf1862b:1",
                "55ec222b86bcae53:1",
                "cc97dc7b1d7d8f7b:1",
                END,
            ],
        ),
    ],
)
def test_they_are_githubs(text, hashes):
    """The values are those of `github/codeql-action` for these texts."""
    assert line_hashes(text) == hashes


@pytest.mark.parametrize("end", ["\r", "\r\n"])
def test_line_ends_count_alike(end):
    """A carriage return is a line's end."""
    text = "hello;\nworld\n\nend\n"
    assert line_hashes(text.replace("\n", end)) == line_hashes(text)


def test_a_line_keeps_its_hash_when_it_moves():
    """Inserted lines above do not change the hash."""
    lines = "\n".join(f"line {number}" for number in range(50))
    assert line_hashes(f"# new\n{lines}")[1:] == line_hashes(lines)
