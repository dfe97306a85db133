"""Quantities are parsed exactly, as in the API."""

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.quantities import LARGEST, QuantityError, format_quantity, parse_quantity
from tests.characters import CHARACTERS
from webhook.engine import Fields, WrongTypeError

TEBI = 1024**4


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("1", 1),
        ("+1", 1),
        ("-1", -1),
        ("007", 7),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("1.G", 10**9),
        ("0.5Gi", 2**29),
        ("500m", Fraction(1, 2)),
        ("100k", 100_000),
        ("1M", 10**6),
        ("1Mi", 2**20),
        ("1E", 10**18),
        ("1Ei", 2**60),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1e+3", 1000),
        ("1.5e-3", Fraction(2, 1000)),
        ("12E-1", Fraction(12, 10)),
        ("1m", Fraction(1, 1000)),
        ("1u", Fraction(1, 1000)),
        ("1n", Fraction(1, 1000)),
        ("0.1m", Fraction(1, 1000)),
        ("1.0001", Fraction(1001, 1000)),
        ("-0.0001", Fraction(-1, 1000)),
        ("0n", 0),
        ("1e-999999999", Fraction(1, 1000)),
        ("0e999999999", 0),
        ("1e999999999", LARGEST),
        ("8Ei", LARGEST),
        ("9223372036854775807", LARGEST),
        ("9223372036854775808", LARGEST),
        ("-8Ei", -LARGEST),
        (" 1 ", 1),
    ],
)
def test_a_quantity_is_a_number(text, value):
    """Unit, exponent and sign are parsed; finer values than a thousandth are rounded away from zero."""
    quantity = parse_quantity(text)
    assert quantity.millis == value * 1000
    assert str(quantity) == text.strip()


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "-",
        ".",
        "m",
        "Ki",
        "1K",
        "1ki",
        "1mi",
        "1g",
        "1GB",
        "1 Gi",
        "1e",
        "1e+",
        "1E1.5",
        "1e3m",
        "1.2.3",
        "1,5",
        "--1",
        "0x10",
        "1_000",
        "inf",
        "NaN",
        "\u0661",
        "1\u00a0m",
        "1" * 257,
        "1".rjust(257),
    ],
)
def test_an_invalid_quantity_is_rejected(text):
    """Nothing is guessed."""
    with pytest.raises(QuantityError):
        parse_quantity(text)


UNITS = {
    "n": "1e-9",
    "u": "1e-6",
    "m": "1e-3",
    "": "1",
    "k": "1e3",
    "M": "1e6",
    "G": "1e9",
    "T": "1e12",
}
UNITS |= {
    "P": "1e15",
    "E": "1e18",
    "Ki": str(2**10),
    "Mi": str(2**20),
    "Gi": str(2**30),
    "Ti": str(TEBI),
}
UNITS |= {"Pi": str(2**50), "Ei": str(2**60)}
EXACT = Context(prec=200)
DIGITS = st.text("0123456789", min_size=1, max_size=25)
NUMBERS = (
    DIGITS | st.builds("{}.{}".format, DIGITS | st.just(""), DIGITS) | DIGITS.map("{}.".format)
)
EXPONENTS = st.builds("{}{}".format, st.sampled_from("eE"), st.integers(-30, 30) | st.just("+2"))
SIGNS = st.sampled_from(["", "+", "-"])


def reference(sign, number, factor):
    """Return a quantity's value in thousandths, computed with decimals."""
    thousandths = EXACT.multiply(Decimal(number), EXACT.multiply(Decimal(factor), Decimal(1000)))
    rounded = int(thousandths.to_integral_value(ROUND_CEILING))
    return min(rounded, LARGEST * 1000) * (-1 if sign == "-" else 1)


@given(SIGNS, NUMBERS, st.sampled_from(sorted(UNITS)))
def test_units_are_exact(sign, number, unit):
    """Every number with every unit equals its decimal value."""
    assert parse_quantity(f"{sign}{number}{unit}").millis == reference(sign, number, UNITS[unit])


@given(SIGNS, NUMBERS, EXPONENTS)
def test_exponents_are_exact(sign, number, exponent):
    """A number with an exponent has the exact value."""
    assert parse_quantity(f"{sign}{number}{exponent}").millis == reference(
        sign, number, f"1{exponent}"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (3, "3"),
        (Fraction(1, 2), "500m"),
        (1000, "1000"),
        (1024, "1Ki"),
        (3 * 2**30, "3Gi"),
        (2**30 + 1, "1073741825"),
    ],
)
def test_a_number_is_formatted_with_the_largest_unit(value, text):
    """The unit leaves a whole number, or thousandths are used."""
    assert str(format_quantity(int(value * 1000))) == text


@given(st.integers(0, LARGEST * 1000))
def test_formatting_is_exact(thousandths):
    """Parsing the text gives the number."""
    assert format_quantity(thousandths).millis == thousandths


@given(
    st.text(alphabet="0123456789.+-eEinumkKMGTP \u0661", max_size=12)
    | st.text(CHARACTERS, max_size=8)
)
def test_any_text_is_parsed_or_rejected(text):
    """The result is a number within limits, or a QuantityError."""
    try:
        millis = parse_quantity(text).millis
    except QuantityError:
        return
    assert abs(millis) <= LARGEST * 1000


@pytest.mark.parametrize(
    ("value", "text"), [("2", "2"), (2, "2"), (0.5, "0.5"), (1e-05, "1e-05"), (1e22, "1e+22")]
)
def test_a_field_may_be_text_or_number(value, text):
    """The API server accepts both."""
    assert str(Fields({"a": {"cpu": value}}).quantity("a.cpu")) == text


def test_null_resources_are_absent():
    """A null amount or a null list."""
    fields = Fields({"limits": {"cpu": "1", "memory": None, "nvidia.com/gpu": 2}, "requests": None})
    assert {name: str(each) for name, each in fields.quantities("limits").items()} == {
        "cpu": "1",
        "nvidia.com/gpu": "2",
    }
    assert fields.quantities("requests") == {}
    assert fields.quantity("requests.cpu") is None


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("5 cores", '"5 cores"'),
        ("", '""'),
        (True, "true is a boolean"),
        ([], "a list"),
        ({"value": 1}, "an object"),
    ],
)
def test_an_invalid_quantity_in_a_field_is_an_error(value, found):
    """The error has the path, the value, and the expected form."""
    fields = Fields({"limits": {"cpu": value, "example.com/x": value}})
    with pytest.raises(WrongTypeError) as told:
        fields.quantity("limits.cpu")
    assert (told.value.path, told.value.found) == ("limits.cpu", found)
    assert told.value.wanted == "a quantity, such as 500m, 1.5 or 2Gi"
    fields = Fields({"limits": {"example.com/x": value}})
    with pytest.raises(WrongTypeError) as told:
        fields.quantities("limits")
    assert told.value.path == "limits[example.com/x]"
