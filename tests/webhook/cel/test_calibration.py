"""Cost and time go together: a unit of any function or macro takes no longer than a bound."""

import time
from collections.abc import Callable, Iterator

import pytest

from tests.webhook.cel.calls import CALLS, MACRO_CALLS, parts
from tests.webhook.cel.lenient import compiled
from webhook.cel import BUDGET, BudgetError, Environment, EvaluationError, Meter, Program
from webhook.cel.admission_environment import AUTHORIZER
from webhook.cel.closures import CAUGHT
from webhook.cel.functions import FUNCTIONS
from webhook.cel.macros import MACROS
from webhook.cel.types import parse_type

ENVIRONMENT = Environment(
    {"o": parse_type("dyn"), "authorizer": parse_type("kubernetes.Authorizer")}
)
SIZES = (1, 30, 1000, 30_000, 300_000)
# Of a loop in Python that calls an empty function: 16 steps are about half a microsecond on a
# machine where a step takes 30 ns. The margin is for a busy one.
STEPS_OF_A_UNIT, MARGIN = 16, 2.0
ROUNDS = 3


@pytest.fixture(scope="module")
def objects():
    """The values of `o`."""
    return [parts(size) for size in SIZES]


def step() -> None:
    """Do nothing: the baseline of a cost unit."""


def lowest(work: Callable[[], object], count: int) -> float:
    """Return the CPU seconds of one of `count` calls, in the best of some rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.thread_time()
        for _ in range(count):
            work()
        best = min(best, (time.thread_time() - started) / count)
        if best * count > 0.02:
            break
    return best


def measured(program: Program, value: object) -> tuple[float, int]:
    """Return the CPU seconds of an evaluation, and its units."""
    meter = Meter()
    frame = [meter, value, AUTHORIZER, *program.blanks]

    def evaluate() -> None:
        meter.left = BUDGET
        try:
            program.code(frame)
        except EvaluationError:
            meter.left -= CAUGHT  # as where an operator absorbs it
        except BudgetError:
            pass

    started = time.thread_time()
    evaluate()
    once = max(time.thread_time() - started, 1e-7)
    seconds = lowest(evaluate, max(1, min(500, int(0.0005 / once))))
    return seconds, min(BUDGET - meter.left, BUDGET) + program.nodes


def excess(expressions: list[str], objects: list[dict[str, object]]) -> Iterator[str]:
    """Yield each call that takes longer than its cost allows."""
    for expression in expressions:
        program = compiled(expression, ENVIRONMENT, checked=False)
        for size, value in zip(SIZES, objects, strict=True):
            for last in (False, False, False, True):
                seconds, units = measured(program, value)
                reference = lowest(step, 1000)
                steps = seconds / reference / units
                if steps <= STEPS_OF_A_UNIT * MARGIN:
                    break
                if last:
                    yield f"{expression} at {size}: {units} units, {seconds * 1e6:.1f} us, {steps:.0f} steps a unit"


def test_every_function_and_macro_has_calls():
    """A function in the table needs a line in `calls`."""
    assert FUNCTIONS.keys() == CALLS.keys()
    assert MACROS.keys() == MACRO_CALLS.keys()


@pytest.mark.long
@pytest.mark.parametrize("name", CALLS)
def test_a_unit_of_a_function_takes_no_longer_than_a_bound(name, objects):
    """The bound holds at every size; the calls reach every version of the function."""
    FUNCTIONS[name].table.clear()
    assert list(excess(CALLS[name], objects)) == []
    if FUNCTIONS[name].form is None and CALLS[name] != CALLS["check"]:
        called = {id(call) for call, _ in FUNCTIONS[name].table.values()}
        versions = FUNCTIONS[name].versions
        assert [each.signature for each in versions if id(each.call) not in called] == []


@pytest.mark.long
@pytest.mark.parametrize("name", MACRO_CALLS, ids=str)
def test_a_unit_of_a_macro_takes_no_longer_than_a_bound(name, objects):
    """At every size."""
    assert list(excess(MACRO_CALLS[name], objects)) == []
