"""Globs: `*` and `?` are special, nothing else."""

import fnmatch
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.engine.globs import MAX_GLOB, MAX_MATCHED, Globs


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


@given(
    st.lists(st.text(alphabet="ab?*", max_size=8), max_size=3), st.text(alphabet="ab\n", max_size=9)
)
def test_a_glob_matches_what_a_file_name_would(patterns, name):
    """Without brackets, which have no meaning here, the result is that of `fnmatch`."""
    expected = any(re.match(fnmatch.translate(each), name) for each in patterns)
    assert Globs(patterns).match(name) is expected


@pytest.mark.parametrize(
    "pattern",
    ["*" + "a" * 400 + "b*", "*" + "?a" * 200 + "b*", "*a" * 200 + "*b*", "*" + "a?" * 200 + "b"],
)
def test_a_pattern_and_a_name_that_almost_match_take_linear_time(pattern):
    """Users choose both patterns and names: a thousand matches take less than a second each."""
    globs, name = Globs([pattern]), "a" * MAX_MATCHED
    started = time.process_time()
    assert not any(globs.match(name) for _ in range(100))
    assert time.process_time() - started < 2.0


def test_a_pattern_that_is_too_long_is_refused():
    """A name without a star may be as long as it likes."""
    text = f'^"a+\\.\\.\\." has {MAX_GLOB + 1} characters; at most {MAX_GLOB} are allowed in a pattern$'
    with pytest.raises(ValueError, match=text):
        Globs(["a" * MAX_GLOB + "*"])
    assert Globs(["a" * 5000]).match("a" * 5000)


def test_a_name_that_is_too_long_matches_only_a_star_and_itself():
    """The limit is far above the length of any name that the API server accepts."""
    assert Globs(["a*"]).match("a" * MAX_MATCHED)
    assert not Globs(["a*"]).match("a" * (MAX_MATCHED + 1))
    assert Globs(["*"]).match("a" * (MAX_MATCHED + 1))
