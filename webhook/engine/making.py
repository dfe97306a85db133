"""What would be made of an object, judged as if it were being made."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from webhook.engine.exceptions import NOW
from webhook.engine.fields import Fields
from webhook.engine.look_ups import with_object
from webhook.engine.origins import traced
from webhook.engine.planners import Object, Planner, Planners, RefusedError
from webhook.engine.policy import Violation
from webhook.engine.request import About, Request
from webhook.engine.verdict import Outcome, Verdict

SCALE_PARENT = "scale_parent"
GENERATED = "xxxxx"  # as long as what the API server adds to a generateName
OPERATIONS = ("CREATE", "UPDATE")


class Judge(Protocol):
    """Whatever judges requests."""

    def mutate(self, request: Request) -> Verdict:
        """Set what policies set."""

    def validate(self, request: Request) -> Verdict:
        """Say what policies find."""


@dataclass(frozen=True, slots=True)
class Child:
    """One object that would be made: the request that would make it, and where its fields come from."""

    request: Request
    origin: Mapping[str, str]
    parent: Object

    def told(self, outcome: Outcome) -> Outcome:
        """Return an outcome about the child in words about its parent."""
        if not (outcome.violations or outcome.tolerated or outcome.malformed or outcome.patched):
            return outcome  # nothing to translate, as mostly
        return replace(
            outcome,
            violations=tuple(map(self._told, outcome.violations)),
            tolerated=tuple(map(self._told, outcome.tolerated)),
            malformed=None if outcome.malformed is None else self._told(outcome.malformed),
            patched=False,
        )

    def _told(self, violation: Violation) -> Violation:
        source = None if violation.of else traced(violation.path, self.origin, self.parent)
        if source is not None:
            return replace(violation, path=source)
        about = self.request.about
        return violation if violation.of else replace(violation, of=f"{about.kind}/{about.name}")


def is_planned(planner: Planner, request: Request) -> bool:
    """Return whether this request decides what is made."""
    about = request.about
    subresources = ("",) if planner.replicas is None else ("", "scale")
    return about.operation in OPERATIONS and about.subresource in subresources


def children(planners: Planners, planner: Planner, request: Request) -> list[Child]:
    """Return what would be made for a request, each as a request of its own. RefusedError where nothing can be.

    What would be there already, made of the object as it was, is updated.
    """
    now, (object, old) = request.lookup(NOW), _states(planner, request)
    if object is None:
        return []
    try:
        before = [] if old is None else planner.plan(old, now)
    except RefusedError as error:
        before, refused = [], error.violations
    else:
        refused = ()
    try:
        made = planner.plan(object, now)
    except RefusedError as error:
        news = [each for each in error.violations if not any(each.is_no_worse_than(was) for was in refused)]
        if news:
            raise RefusedError(news) from None
        return []
    there = {_name(planner, each.object): each.object for each in before}
    return [
        Child(_request(planners, planner, request, object, each.object, there), each.origin, object) for each in made
    ]


def judged(judge: Judge, child: Child, looked_up: Mapping[str, Any]) -> tuple[tuple[Outcome, ...], Object]:
    """Return what would come of a child, in words about its parent, and the child as it would be stored.

    Our mutations come first. What they set when a child is made stays when it is updated: the controller applies
    its own fields only. So both states of an update have them.
    """
    request = child.request.with_looked_up(looked_up)
    if request.about.operation == "UPDATE":
        old = request.old_object
        assert old is not None
        created = replace(request.about, operation="CREATE")
        first, second = (_mutated(judge, Request(created, each, None, looked_up)) for each in (request.value, old))
        request = Request(request.about, first, second, looked_up)
    mutation = judge.mutate(request)
    object = mutation.object or request.value
    outcomes = mutation.outcomes
    if mutation.allowed:
        outcomes += judge.validate(request.with_object(object)).outcomes
    return tuple(map(child.told, outcomes)), object


def of_made(judge: Judge, found: Iterable[Child], looked_up: Mapping[str, Any]) -> Iterator[Outcome]:
    """Yield what would come of all children; each finds those before it made when it looks others up."""
    for child in found:
        outcomes, object = judged(judge, child, looked_up)
        yield from outcomes
        looked_up = with_object(looked_up, object, child.request.about.namespace)


def without_repeats(outcomes: Iterable[Outcome], more: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """Return all outcomes; of `more` without what the same policy said of the same field already."""
    found = list(outcomes)
    asked = {outcome.policy for outcome in found}
    denied = {_said(outcome, each) for outcome in found for each in outcome.violations}
    tolerated = denied | {_said(outcome, each) for outcome in found for each in outcome.tolerated}
    failed = {_failure(outcome) for outcome in found}
    for outcome in more:
        if outcome.error is not None:
            if _failure(outcome) not in failed:
                found.append(outcome)
                failed.add(_failure(outcome))
            continue
        new = [each for each in outcome.violations if _said(outcome, each) not in denied]
        kept = [each for each in outcome.tolerated if _said(outcome, each) not in tolerated]
        if new or kept or outcome.malformed is not None or outcome.policy not in asked:
            found.append(replace(outcome, violations=tuple(new), tolerated=tuple(kept)))
        asked.add(outcome.policy)
        denied |= {_said(outcome, each) for each in new}
        tolerated |= {_said(outcome, each) for each in (*new, *kept)}
    return tuple(found)


def _said(outcome: Outcome, violation: Violation) -> tuple[str, str, str]:
    return outcome.policy, violation.where, violation.rule


def _failure(outcome: Outcome) -> tuple[str, str, str]:
    return outcome.policy, type(outcome.error).__name__, str(outcome.error)


def _mutated(judge: Judge, request: Request) -> Object:
    return judge.mutate(request).object or request.value


def _states(planner: Planner, request: Request) -> tuple[Object | None, Object | None]:
    """Return the whole object as it would be, and as it was; of a /scale those of what it scales."""
    old = request.old_object if request.about.operation == "UPDATE" else None
    if request.about.subresource == "scale":
        assert planner.replicas is not None
        old = request.lookup(SCALE_PARENT) or None
        object = None if old is None else _with(old, planner.replicas.split("."), request.integer("spec.replicas") or 0)
        return object, old
    about = request.about
    return tuple(None if each is None else _named(each, about) for each in (request.object, old))  # type: ignore[return-value]


def _with(object: Object, path: list[str], value: Any) -> Object:
    step, *rest = path
    return object | {step: _with(object.get(step) or {}, rest, value) if rest else value}


def _named(object: Object, about: About) -> Object:
    """Return an object with the name and the namespace that it will have."""
    metadata = Fields(object).mapping("metadata")
    name = metadata.get("name") or about.name or f"{metadata.get('generateName', '')}{GENERATED}"
    if metadata.get("name") == name and metadata.get("namespace", "") == about.namespace:
        return object
    return object | {"metadata": metadata | {"name": name, "namespace": about.namespace}}


def _name(planner: Planner, object: Object) -> tuple[str, str, str]:
    kind = planner.made_kind(object)
    return kind.group, kind.kind, object["metadata"]["name"]


def _request(
    planners: Planners,
    planner: Planner,
    request: Request,
    parent: Object,
    object: Object,
    there: Mapping[tuple[str, str, str], Object],
) -> Request:
    """Return the request by which the controller would make `object`, or change what is there."""
    kind, name = planner.made_kind(object), str(object["metadata"]["name"])
    namespace = request.about.namespace if kind.namespaced else ""
    old = there.get((kind.group, kind.kind, name))
    about = About(
        uid=request.about.uid,
        operation="CREATE" if old is None else "UPDATE",
        group=kind.group,
        version=str(object["apiVersion"]).rpartition("/")[2],
        kind=kind.kind,
        resource_group=kind.group,
        resource=kind.plural,
        name=name,
        namespace=namespace,
        username=planners.maker.username,
        groups=planners.maker.groups,
        dry_run=request.about.dry_run,
    )
    new, before = (
        None if each is None else _owned(planners.filled(kind, each), parent, namespace) for each in (object, old)
    )
    return Request(about, new, before, kind=kind)


def _owned(object: Object, parent: Object, namespace: str) -> Object:
    """Return a child with its namespace and its owner."""
    owner = {
        "apiVersion": parent.get("apiVersion"),
        "kind": parent.get("kind"),
        "name": parent["metadata"]["name"],
        "uid": parent["metadata"].get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    placed = {"namespace": namespace} if namespace else {}
    return object | {"metadata": object["metadata"] | placed | {"ownerReferences": [owner]}}
