"""Globs: `*` and `?` are special, nothing else."""

import pytest

from webhook.engine.globs import Globs


@pytest.mark.parametrize(
    ("patterns", "name", "matched"),
    [
        (["shop"], "shop", True),
        (["shop"], "shops", False),
        (["shop"], "Shop", False),
        (["shop-*"], "shop-", True),
        (["*"], "", True),
        (["?"], "", False),
        (["a?c"], "abc", True),
        (["a", "b"], "b", True),
        ([], "a", False),
        (["a*"], "a\nb", True),
        (["a"], "a\n", False),
        (["a.c"], "abc", False),
        (["a|b"], "b", False),
        (["[ab]"], "a", False),
        (["[ab]"], "[ab]", True),
        (["[::1]:5000/*"], "[::1]:5000/app:1", True),
        (["[!a]"], "b", False),
        (["docker.io/*"], "docker.io/team/app", True),
        (["*" * 50 + "x"], "a" * 5000, False),
    ],
)
def test_a_name_is_matched_whole(patterns, name, matched):
    """Case matters, brackets are literal, and a star matches slashes."""
    assert Globs(patterns).match(name) is matched
