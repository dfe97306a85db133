"""Any policy of a tenant within 4 KiB takes no more time and memory than its cost allows."""

import os
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

import pytest

from tests.webhook.cel.calls import parts
from tests.webhook.cel.generator import Generator
from tests.webhook.cel.lenient import compiled
from tests.webhook.cel.test_calibration import MARGIN, STEPS_OF_A_UNIT, lowest, step
from webhook.cel import BUDGET, CelError, Environment, Meter, Program, Variables
from webhook.cel.closures import CAUGHT
from webhook.cel.types import parse_type

POLICIES = int(os.environ.get("POLICIES", "100"))  # 1000: a thorough run
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


def slow(seeds: range, sizes: Sequence[int]) -> tuple[Counter[int], list[str]]:
    """Return how many policies used their whole budget, by size, and those that took longer than their cost."""
    values, found, whole = {size: parts(size) for size in sizes}, [], Counter[int]()
    for seed in seeds:
        variables, expression = Generator(seed).policy()
        programs = [compiled(each, ENVIRONMENT, checked=False) for each in (*variables, expression)]
        for size, value in values.items():
            for _ in range(ATTEMPTS):
                seconds, units = evaluated(programs, value)
                allowed = (units + CAUGHT * len(programs)) * STEPS_OF_A_UNIT * MARGIN
                if seconds <= lowest(step, 1000) * allowed:
                    break
            else:
                found.append(
                    f"seed {seed} at {size}: {units} units, {seconds * 1e3:.2f} ms: {variables} {expression}"
                )
            whole[size] += units == BUDGET
    return whole, found


def test_a_random_policy_takes_no_longer_than_it_costs():
    """Of thirty random policies, some use the whole budget at each size."""
    whole, found = slow(range(30), [30, 3000, 100_000])
    assert found == []
    assert min(whole.values()) > 9


@pytest.mark.long
def test_many_random_policies_take_no_longer_than_they_cost():
    """At each size."""
    assert slow(range(1000, 1000 + POLICIES), [1, 30, 1000, 30_000, 300_000])[1] == []
