"""What the reader of a database saw: commits of two primaries at one time are found."""

import pytest

from tests.node.clients import Commit, commits_of_earlier_primaries

FIRST, SECOND = (1, "10.0.0.1"), (2, "10.0.0.2")


@pytest.mark.parametrize(
    ("writers", "late"),
    [
        ([FIRST, FIRST, SECOND, SECOND], []),
        ([FIRST, SECOND, FIRST, SECOND, FIRST], [2, 4]),
        # an instance that starts again with its timeline, and then one of the same timeline
        ([FIRST, FIRST, (1, "10.0.0.3"), FIRST], [3]),
        # the same instance once more, after it was chosen again
        ([FIRST, SECOND, (3, "10.0.0.1")], []),
    ],
)
def test_a_commit_after_the_first_one_of_a_later_primary_is_late(
    writers: list[tuple[int, str]], late: list[int]
) -> None:
    """The number of the commit is its time."""
    commits = [Commit(time, *writer) for time, writer in enumerate(writers)]
    assert [commit.began for commit in commits_of_earlier_primaries(commits)] == late
