"""Expressions that are slow or build huge texts end with a BudgetError."""

import time

import pytest

from webhook.cel import BudgetError, CompileError, EvaluationError, Variables
from webhook.cel.admission_environment import ADMISSION, with_variable
from webhook.cel.types import parse_type

NUMBERS = list(range(200_000))  # about 1 MB of JSON
TEXT = "a" * 1_000_000
SHARED: list[object] = [1]
for _ in range(8):  # as variables that read each other make it; 100 million items
    SHARED = [SHARED] * 10
OBJECT = {
    "shared": SHARED,
    "half": "b" + "a" * 500_000,
    "numbers": NUMBERS,
    "text": TEXT,
    "deep": None,
    "names": {f"key{i}": i for i in range(50_000)},
}
NESTED = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"

TOO_MUCH = [
    "object.shared.flatten(20).size() > 0",
    "object.shared.distinct().size() > 0",
    "[object.shared, object.shared].indexOf(object.shared) > 0",
    "object.shared == object.shared",
    "object.shared in [object.shared]",
    "sets.contains(object.shared, object.shared)",
    "sets.equivalent(object.shared, object.shared)",
    "'%s'.format([object.shared]) == ''",
    "lists.range(10000).all(i, base64.decode(object.text).size() > 0)",
    "lists.range(10000).all(i, string(bytes(object.text)).size() > 0)",
    "object.text.matches('(a?){300}b')",
    "object.text.lastIndexOf(object.half) > 0",
    "object.text.findAll('a.*b|a').size() > 0",
    "url('https://a/?' + object.text.replace('a', 'a&')).getQuery().size() > 0",
    "lists.range(9000).all(i, timestamp(0).getHours('No/' + string(i)) == 0 || true)",
    "lists.range(9000).all(i, object.nope.nope || object.nope.nope || true)",
    "object.numbers.all(x, x >= 0)",
    "object.numbers.exists(x, object.numbers.exists(y, x + y < 0))",
    "object.names.all(name, name != '')",
    "object.numbers.map(x, [x, x, x]).size() > 0",
    "sets.equivalent(object.numbers, object.numbers)",
    "object.numbers.distinct().size() > 0",
    "object.numbers.sort().size() > 0",
    "lists.range(1000000000).size() > 0",
    "object.text.replace('a', object.text).size() > 0",
    "object.text.replace('', 'bbbbbbbbbb').size() > 0",
    "object.text.findAll('a').size() > 0",
    f"{NESTED}.all(a, {NESTED}.all(b, {NESTED}.all(c, {NESTED}.all(d, {NESTED}.all(e, true)))))",
    f"{NESTED}.map(i, object.text + object.text).size() > 0",
    f"{NESTED}.map(i, object.text.lowerAscii()).size() > 0",
    f"{NESTED}.all(i, object.text.contains('b') || object.text.matches('b$') || true)",
    f"{NESTED}.map(i, '%s'.format([object.numbers])).size() > 0",
    "lists.range(100).all(i, 'a'.matches('(a|b|' + string(i) + '){20}') || true)",
    "lists.range(9).map(i, object.text).join(object.text).size() > 0",
    "object.numbers.sum() > 0",
    "lists.range(9000).all(i, quantity(string(i) + 'Mi').isInteger())",
    "lists.range(9000).all(i, cidr('10.0.0.0/8').containsIP('10.1.2.3'))",
    "0 in object.numbers && object.numbers.exists(x, -1 in object.numbers)",
    "object.numbers + object.numbers == [] || object.numbers + object.numbers == []",
]


@pytest.mark.parametrize("expression", TOO_MUCH)
def test_an_expression_that_costs_too_much_is_cancelled(expression):
    """Each of these ends with a BudgetError, before anything large is built."""
    program = ADMISSION.compile(expression, "bool")
    with pytest.raises(BudgetError, match="costs too much"):
        program.evaluate(ADMISSION.activation({"object": OBJECT}))


def test_an_invalid_quantity_is_rejected_in_linear_time():
    """Apimachinery's regular expression would try every prefix with every other one."""
    program = ADMISSION.compile("isQuantity(object.text)", "bool")
    activation = ADMISSION.activation({"object": {"text": "1" * 250_000 + "!"}})
    started = time.thread_time()
    assert program.evaluate(activation) is False
    assert time.thread_time() - started < 1.0


def test_no_operator_absorbs_a_budget_error():
    """`expensive || true` is an error, not true."""
    program = ADMISSION.compile("object.numbers.all(x, x >= 0) || true", "bool")
    with pytest.raises(BudgetError):
        program.evaluate(ADMISSION.activation({"object": OBJECT}))


def test_all_expressions_of_an_activation_share_one_budget():
    """The rules of one policy do not have separate budgets."""
    program = ADMISSION.compile("lists.range(1000).all(x, x >= 0)", "bool")
    activation = ADMISSION.activation({})
    with pytest.raises(BudgetError):
        [program.evaluate(activation) for _ in range(100)]


def test_variables_that_double_a_text_are_cancelled():
    """A chain of variables shares the budget too."""
    environment, programs = ADMISSION, {}
    for step in range(60):
        before = f"variables.v{step - 1}" if step else "object.text"
        programs[f"v{step}"] = (
            environment.compile(f"{before} + {before}")
            if step
            else environment.compile("string(object.text)")
        )
        environment = with_variable(environment, f"v{step}", parse_type("string"))
    variables = Variables(programs)
    variables.activation = environment.activation(
        {"object": {"text": TEXT}, "variables": variables}
    )
    with pytest.raises(BudgetError):
        environment.compile("variables.v59 == ''", "bool").evaluate(variables.activation)


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 5000 + "1" + ")" * 5000,
        "[" * 3000,
        "{" * 3000,
        "-" * 16000,
        "1" + "+1" * 5000,
        "a" + ".a" * 5000,
        "object" + "[0]" * 3000,
        "true" + " ? true : true" * 500,
        "x" * 17_000,
    ],
)
def test_an_expression_nested_too_deeply_is_refused(expression):
    """Neither the parser nor the compiler runs out of stack."""
    with pytest.raises(CompileError):
        ADMISSION.compile(expression)


def test_a_value_nested_too_deeply_is_an_error():
    """An object that is nested too deeply is an error."""
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    program = ADMISSION.compile("object.deep == object.deep", "bool")
    with pytest.raises(EvaluationError, match="nested too deeply"):
        program.evaluate(ADMISSION.activation({"object": {"deep": deep}}))
