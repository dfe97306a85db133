"""For any expression and object, only CEL's own errors are raised."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.webhook.cel.lenient import compiled
from webhook.cel import CelError, Environment
from webhook.cel.admission_environment import ADMISSION
from webhook.cel.functions import FUNCTIONS
from webhook.cel.types import parse_type

EXAMPLES = max(250, settings().max_examples)  # 3000: a thorough run
ENVIRONMENT = Environment({"object": parse_type("dyn"), "x": parse_type("dyn")})

json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
LITERALS = """0|1|-1|9223372036854775807|-9223372036854775808|1u|18446744073709551615u|1.5|1e308|''|'a/b'|'1h'
'10.0.0.1/8'|'2020-02-30T00:00:00Z'|b'\\xff'|null|true|[]|{}|object|x|[1, 2u, 'a']|{'a': 1, 2: 3}|timestamp(0)
duration('1s')|double('NaN')|double('Infinity')|type(1)|optional.of(1)|optional.none()|ip('::1')|cidr('10.0.0.1/8')|quantity('1Gi')
semver('1.2.3')|url('https://a:1/b?c=d')|object.a.b|object.?a|object[0]|'%s%d%.3f%x%e%b%o'|format.uri()"""
literals = st.sampled_from(LITERALS.replace("\n", "|").split("|"))
OPERATORS = ["+", "-", "*", "/", "%", "<", "<=", "==", "!=", "in", "&&", "||"]
METHODS = sorted(
    {
        name
        for name, entry in FUNCTIONS.items()
        for version in entry.versions
        if version.signature.is_member
    }
)
STATIC = sorted(
    {
        name
        for name, entry in FUNCTIONS.items()
        for version in entry.versions
        if not version.signature.is_member and name[0].isalpha()
    }
)


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    args = st.lists(inner, max_size=3).map(", ".join)
    macro = st.sampled_from(
        ["all", "exists", "exists_one", "map", "filter", "optMap", "optFlatMap", "sortBy"]
    )
    two = st.sampled_from(
        ["all", "exists", "existsOne", "transformList", "transformMap", "transformMapEntry"]
    )
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(OPERATORS), inner),
        st.builds("{}.{}({})".format, inner, st.sampled_from(METHODS), args),
        st.builds("{}({})".format, st.sampled_from(STATIC), args),
        st.builds("{}.{}(i, {})".format, inner, macro, inner | st.just("i")),
        st.builds("{}.{}(i, j, {})".format, inner, two, inner | st.just("j")),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("{}[{}]".format, inner, inner),
        st.builds("{}[?{}]".format, inner, inner),
        st.builds("has({}.a)".format, inner),
        st.builds("[{}, ?{}]".format, inner, inner),
        st.builds("{{{}: {}, ?{}: {}}}".format, inner, inner, inner, inner),
    )


@pytest.mark.long
@given(st.recursive(literals, _larger, max_leaves=6), json, json)
@settings(max_examples=EXAMPLES)
def test_an_evaluation_raises_nothing_but_an_error_of_cel(expression, value, other):
    """Checked or not, an expression has a value or an error of CEL."""
    for checked in (True, False):
        with suppress(CelError):
            program = compiled(expression, ENVIRONMENT, checked=checked)
            program.evaluate(ENVIRONMENT.activation({"object": value, "x": other}))


@given(st.text(max_size=40) | st.text(alphabet="abc.[](){}?:'\"\\+-!&|<>= \n,0x1ue`", max_size=40))
@settings(max_examples=EXAMPLES)
@pytest.mark.long
def test_a_compilation_raises_nothing_but_an_error_of_cel(text):
    """Any text compiles, or is refused with a line and a column."""
    with suppress(CelError):
        ADMISSION.compile(text)
