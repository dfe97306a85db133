"""The order of a stack's services, and the faults of their names and dependencies."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.service_order import faults_of, order_services, title_of

NAMES = ("a", "b", "c", "d", "e")
DEPENDENCIES = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(NAMES, st.sets(st.sampled_from(NAMES)))
)


@given(DEPENDENCIES)
def test_each_comes_after_what_it_depends_on_or_has_a_fault(needed: dict[str, set[str]]) -> None:
    """Of any services, those without a fault are ordered; a fault is an unknown name or a cycle."""
    services = [(name, sorted(needs)) for name, needs in needed.items()]
    faults = faults_of(services, ["database"])
    order = order_services(services, faults)
    assert sorted(order) == list(range(len(services)))
    for rank, place in enumerate(order):
        name, needs = services[place]
        if place not in faults:
            assert {*needs} <= {services[each][0] for each in order[:rank]}
    reached = {name: reach(name, needed) for name in needed}
    for place, (name, needs) in enumerate(services):
        is_wrong = bool(set(needs) - needed.keys()) or name in reached[name]
        assert is_wrong >= (place in faults)
    if not faults:
        assert all(name not in reached[name] for name in needed)


def reach(name: str, needed: dict[str, set[str]]) -> set[str]:
    """Return all services that one depends on, itself included if it is in a cycle."""
    found: set[str] = set()
    left = list(needed[name])
    while left:
        if (each := left.pop()) not in found:
            found.add(each)
            left += needed.get(each, ())
    return found


@pytest.mark.parametrize("names", [*permutations(["a", "b", "c"])])
def test_a_cycle_is_told_whole(names: tuple[str, ...]) -> None:
    """Each service of it has the fault."""
    needs = {"a": ["b"], "b": ["c"], "c": ["a"]}
    faults = faults_of([(name, needs[name]) for name in names], [])
    assert len(faults) == 3
    assert {fault.found for fault in faults.values()} <= {
        "a -> b -> c -> a",
        "b -> c -> a -> b",
        "c -> a -> b -> c",
    }


@pytest.mark.parametrize(
    "name", ["database", "cache", "queue", "backend", "frontend", "ingress", "db", "db-backup"]
)
def test_names_of_components_are_taken(name: str) -> None:
    """A service would get the objects of a component."""
    assert faults_of([(name, [])], [])[0].field == "name"


def test_two_services_of_one_condition() -> None:
    """`a-1` and `a1` would both report as A1Ready."""
    assert list(faults_of([("a-1", []), ("a1", []), ("a-1-b", [])], [])) == [1]
    assert title_of("order-mail") == "OrderMail"
