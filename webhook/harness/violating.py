"""Finds a request that a policy in force denies: from its cases, or from examples of violations.

`violations.json` has examples for each built-in policy. `make manifests` writes it from the cases
of the policies.
"""

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from config.schemas import CustomTypes
from kube.resource import JsonObject, Resource, group_kind
from webhook.engine import (
    NAMESPACE_LABELS,
    NOW,
    SCHEMAS,
    SERVED,
    BoundPolicy,
    ControllerUser,
    Engine,
)
from webhook.engine.kinds import Kind
from webhook.engine.match import LabeledNamespace
from webhook.engine.request import NAME_LABEL
from webhook.harness.bases import has_smallest, smallest
from webhook.harness.reviews import Admission, ask
from webhook.review import MalformedRequestError

EXAMPLES = Path(__file__).parent / "violations.json"
NAME = "gatewright-enforcement"
"""The name of the objects in the requests."""
MAX_NAMESPACES = 20  # in which a request is looked for
MAX_TRIED = 200  # requests that are judged to find one that a policy denies
# First the kinds that the controller may create anyway.
PREFERRED = ("Deployment", "StatefulSet", "CronJob", "Job", "Service", "ConfigMap", "Secret")


CLUSTER: LabeledNamespace = ("", {})


class DeniedRequest(NamedTuple):
    """A request to create an object, which policies deny."""

    kind: Kind
    namespace: str
    object: JsonObject
    titles: frozenset[str] = frozenset()
    """The policies that deny it, all with the same failure policy."""

    @property
    def resource(self) -> Resource:
        """The resource of the object."""
        return self.kind.resource


def find_denied(
    policy: BoundPolicy,
    engine: Engine,
    namespaces: Sequence[LabeledNamespace],
    user: ControllerUser,
    now: datetime,
    carried: Iterable[JsonObject] = (),
    left_out: frozenset[tuple[str, str]] = frozenset(),
) -> DeniedRequest | None:
    """Return a request in one of the namespaces that the policy denies, or None.

    No webhook of the other failure policy denies it too: the API server returns one denial only.
    `carried` are objects of the cases that policies carry; kinds (group and name) that are
    `left_out` are not used.
    """
    tried = 0
    namespaces = list(islice(_find_selected(policy, namespaces), MAX_NAMESPACES))
    selected = {
        key: value
        for clause in policy.match.written
        if clause.object_selector is not None
        for key, value in clause.object_selector.match_labels.items()
    }
    kinds = {
        (target.kind.group, target.kind.kind): target.kind
        for _, target in policy.keys
        if not target.subresource and "CREATE" in target.operations
    }
    if not namespaces and all(kind.namespaced for kind in kinds.values()):
        return None
    for object in _candidates(policy, kinds.keys(), carried):
        kind = kinds[group_kind(object)]
        if (kind.group, kind.kind) in left_out:
            continue
        for namespace in namespaces if kind.namespaced else [CLUSTER]:
            if (tried := tried + 1) > MAX_TRIED:
                return None
            request = _request(object, kind, namespace, selected)
            titles = _find_denying(policy, engine, request, namespace, user, now)
            if titles:
                return request._replace(titles=titles)
    return None


def _find_selected(
    policy: BoundPolicy, namespaces: Iterable[LabeledNamespace]
) -> Iterator[LabeledNamespace]:
    """Yield the namespaces in which a policy can apply."""
    names = policy.namespaces.exact
    for name, labels in namespaces:
        if names is not None and name not in names:
            continue
        if policy.match.may_select_in(name, {NAME_LABEL: name, **labels}):
            yield name, labels


def _candidates(
    policy: BoundPolicy, kinds: Collection[tuple[str, str]], carried: Iterable[JsonObject]
) -> Iterator[JsonObject]:
    """Yield objects of kinds that the policy judges: of its cases, and examples."""
    own = _examples().get(policy.policy.name, ())
    others = [each for name, examples in _examples().items() for each in examples]
    least = [smallest(kind) for _, kind in sorted(kinds) if kind in has_smallest()]
    for source in (carried, own, least, others):
        chosen = [each for each in source if group_kind(each) in kinds]
        yield from sorted(chosen, key=_preference)


def _preference(object: JsonObject) -> int:
    kind = object["kind"]
    return PREFERRED.index(kind) if kind in PREFERRED else len(PREFERRED)


@cache
def _examples() -> dict[str, list[JsonObject]]:
    return orjson.loads(EXAMPLES.read_bytes())  # type: ignore[no-any-return]


def _request(
    object: JsonObject, kind: Kind, namespace: LabeledNamespace, labels: Mapping[str, str]
) -> DeniedRequest:
    """Return the request for an object, with labels that a policy selects it by."""
    object = copy.deepcopy(object)
    metadata = object.get("metadata") or {}
    kept = {key: metadata[key] for key in ("labels", "annotations") if key in metadata}
    own = {"namespace": namespace[0]} if kind.namespaced else {}
    object["metadata"] = {"name": NAME, **own, **kept}
    if labels:
        object["metadata"]["labels"] = {**(kept.get("labels") or {}), **labels}
    return DeniedRequest(kind, namespace[0], object)


def _find_denying(
    policy: BoundPolicy,
    engine: Engine,
    request: DeniedRequest,
    namespace: LabeledNamespace,
    user: ControllerUser,
    now: datetime,
) -> frozenset[str]:
    """Return the titles of the policies that deny a request; none unless `policy` does.

    None either if policies of the other failure policy deny it too.
    """
    admission = Admission(
        request.object,
        namespace=request.namespace,
        username=user.username,
        groups=user.groups,
        resource=request.kind.plural,
    )
    labels = {NAME_LABEL: namespace[0], **namespace[1]}
    looked_up: dict[str, Any] = {
        NAMESPACE_LABELS: labels,
        NOW: now,
        SERVED: (),
        SCHEMAS: CustomTypes,
    }
    try:
        outcomes = ask(engine, admission, looked_up).outcomes
    except MalformedRequestError:
        return frozenset()
    denying = [each for each in outcomes if each.denies]
    titles = frozenset(each.policy for each in denying if each.error is None)
    is_of_one_webhook = all(each.fails_closed == policy.fails_closed for each in denying)
    return titles if policy.title in titles and is_of_one_webhook else frozenset()
