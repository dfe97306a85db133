"""The services of a stack in the order of their dependencies, and the faults of these.

Pure functions. The planners order the services with them, and admission reports the same faults.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

COMPONENTS = ("database", "cache", "queue", "backend", "frontend", "monitoring", "ingress")
# Prefixes of the names of a component's further objects, such as <stack>-db-headless.
TAKEN = ("db", "queue")


class ServiceFault(NamedTuple):
    """A fault of one service: its field and the value, the rule, and the fix."""

    field: str
    found: str
    rule: str
    fix: str


def title_of(component: str) -> str:
    """Return a component's name in conditions: `order-mail` is OrderMail."""
    return "".join(part.capitalize() for part in component.split("-"))


def faults_of(
    services: Sequence[tuple[str, Sequence[str]]], components: Collection[str]
) -> dict[int, ServiceFault]:
    """Return the first fault of each service that has one, by its place.

    A service is its name and those that it depends on: services, or the `components` of the stack.
    """
    faults: dict[int, ServiceFault] = {}
    titles: set[str] = set()
    declared = {name for name, _ in services} | set(components)
    for place, (name, needed) in enumerate(services):
        fault = _name_fault(name, titles) or next(_unknown(name, needed, declared), None)
        if fault is not None:
            faults[place] = fault
        titles.add(title_of(name))
    places = {name: place for place, (name, _) in enumerate(services)}
    while cycle := _cycle_of(_graph(services, faults)):
        path = " -> ".join(cycle)
        for name in cycle[1:]:
            fix = "remove one of these dependencies"
            faults[places[name]] = ServiceFault("dependsOn", path, "it waits for itself", fix)
    return faults


def order_services(
    services: Sequence[tuple[str, Sequence[str]]], faults: Collection[int]
) -> list[int]:
    """Return the places of the services, each after those that it depends on."""
    names = list(TopologicalSorter(_graph(services, faults)).static_order())
    ranks = {name: rank for rank, name in enumerate(names)}
    return sorted(range(len(services)), key=lambda place: ranks[services[place][0]])


def _name_fault(name: str, titles: Collection[str]) -> ServiceFault | None:
    if name in COMPONENTS or name.split("-")[0] in TAKEN:
        rule = "objects of the stack have names that begin so"
        return ServiceFault("name", name, rule, "choose another name")
    if title_of(name) in titles:
        rule = f"another service has the condition {title_of(name)}Ready"
        return ServiceFault("name", name, rule, "choose another name")
    return None


def _unknown(name: str, needed: Sequence[str], known: Set[str]) -> Iterator[ServiceFault]:
    for other in needed:
        if other not in known:
            rule = "it is no service and no component of this stack"
            adds = [f"add spec.{other}"] if other in COMPONENTS else []
            others = sorted(known - {name})
            names = [f"name one of {', '.join(others)}"] if others else ["remove it"]
            yield ServiceFault("dependsOn", other, rule, ", or ".join(adds + names))


def _graph(
    services: Sequence[tuple[str, Sequence[str]]], faults: Collection[int]
) -> Mapping[str, Sequence[str]]:
    """Return the dependencies between services; one with a fault has none."""
    names = {name for name, _ in services}
    return {
        name: [] if place in faults else [other for other in needed if other in names]
        for place, (name, needed) in enumerate(services)
    }


def _cycle_of(graph: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the services of a cycle, the first also last; empty without one."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1][::-1]
        return cycle
    return []
