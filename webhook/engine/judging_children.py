"""Judge an object's planned children as if the controller created them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from webhook.engine.children import Child
from webhook.engine.look_ups import with_object
from webhook.engine.planners import Object
from webhook.engine.request import Request
from webhook.engine.verdict import Outcome, Verdict


class Judge(Protocol):
    """Whatever judges requests."""

    def mutate(self, request: Request) -> Verdict:
        """Set what policies set."""

    def validate(self, request: Request) -> Verdict:
        """Say what policies find."""


def judge_children(judge: Judge, found: Iterable[Child], looked_up: Mapping[str, Any]) -> Iterator[Outcome]:
    """Yield what would come of all children; each finds those before it made when it looks others up."""
    for child in found:
        outcomes, object = _judged(judge, child, looked_up)
        yield from outcomes
        looked_up = with_object(looked_up, object, child.request.attributes.namespace)


def _judged(judge: Judge, child: Child, looked_up: Mapping[str, Any]) -> tuple[tuple[Outcome, ...], Object]:
    """Return what would come of a child, in words about its parent, and the child as it would be stored.

    Our mutations come first. What they set when a child is made stays when it is updated: the controller applies
    its own fields only. So both states of an update have them.
    """
    request = child.request.with_looked_up(looked_up)
    if request.attributes.operation == "UPDATE":
        old = request.old_object
        assert old is not None
        created = request.attributes._replace(operation="CREATE")
        first, second = (_mutated(judge, Request(created, each, None, looked_up)) for each in (request.value, old))
        request = Request(request.attributes, first, second, looked_up)
    mutation = judge.mutate(request)
    object = mutation.object or request.value
    outcomes = mutation.outcomes
    if mutation.allowed:
        outcomes += judge.validate(request.with_object(object)).outcomes
    return tuple(map(child.told, outcomes)), object


def _mutated(judge: Judge, request: Request) -> Object:
    return judge.mutate(request).object or request.value
