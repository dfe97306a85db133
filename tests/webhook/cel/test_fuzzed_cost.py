"""Any policy of a tenant within 4 KiB takes no more time and memory than its cost allows."""

import time
from contextlib import suppress

import pytest

from tests.webhook.cel.calls import parts
from tests.webhook.cel.generator import Generator
from tests.webhook.cel.lenient import compiled
from tests.webhook.cel.test_calibration import MARGIN, STEPS_OF_A_UNIT, lowest, step
from webhook.cel import BUDGET, CelError, Environment, Meter, Program, Variables
from webhook.cel.closures import CAUGHT
from webhook.cel.types import parse_type

DYN = parse_type("dyn")
# The best of them counts: what else runs on the machine can only make one slower.
ATTEMPTS = 20
ENVIRONMENT = Environment({"o": DYN, "variables": DYN})


def evaluated(programs: list[Program], value: object) -> tuple[float, int]:
    """Return the CPU seconds of an evaluation, and its units."""
    variables = Variables({f"v{index}": each for index, each in enumerate(programs[:-1])})
    meter = Meter()
    variables.activation = ENVIRONMENT.activation({"o": value, "variables": variables}, meter)
    started = time.thread_time()
    with suppress(CelError):
        programs[-1].evaluate(variables.activation)
    return time.thread_time() - started, min(BUDGET - meter.left, BUDGET)


def slow(seeds: range, size: int) -> tuple[int, list[str]]:
    """Return how many policies used their whole budget, and those that took longer than their cost."""
    value, found, whole = parts(size), [], 0
    for seed in seeds:
        variables, expression = Generator(seed).policy()
        programs = [compiled(each, ENVIRONMENT, checked=False) for each in (*variables, expression)]
        for _ in range(ATTEMPTS):
            seconds, units = evaluated(programs, value)
            allowed = (units + CAUGHT * len(programs)) * STEPS_OF_A_UNIT * MARGIN
            if seconds <= lowest(step, 1000) * allowed:
                break
        else:
            found.append(
                f"seed {seed}: {units} units, {seconds * 1e3:.2f} ms: {variables} {expression}"
            )
        whole += units == BUDGET
    return whole, found


@pytest.mark.parametrize("size", [30, 3000, 100_000])
def test_a_random_policy_takes_no_longer_than_it_costs(size):
    """Of thirty random policies, some use the whole budget."""
    whole, found = slow(range(30), size)
    assert found == []
    assert whole > 9


@pytest.mark.long
@pytest.mark.parametrize("size", [1, 30, 1000, 30_000, 300_000])
def test_many_random_policies_take_no_longer_than_they_cost(size):
    """Three hundred for each size."""
    assert slow(range(1000, 1300), size)[1] == []
