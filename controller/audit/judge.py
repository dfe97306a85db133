"""Judges objects that stand in the cluster, as the webhook would judge their creation. Pure."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from controller.audit.inventory import Inventory
from controller.audit.listing import Object
from webhook.engine import Attributes, Engine, Outcome, Request, Verdict
from webhook.engine.kinds import Kind
from webhook.messages import failure

Level = Literal["fail", "warn", "error"]
LEVELS: dict[str, Level] = {"Deny": "fail", "Warn": "warn", "Audit": "warn"}  # the first that holds


class Result(NamedTuple):
    """One violation of a policy by an object: `result` is fail, warn or error, as in a Report."""

    policy: str
    rule: str  # the built-in policy, or "" where the policy object has rules of its own
    path: str
    message: str
    result: Level
    severity: str
    category: str


class Judged(NamedTuple):
    """An object with at least one result."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    results: tuple[Result, ...]


class Judge:
    """Judges objects by one engine, with what is looked up for them."""

    def __init__(self, engine: Engine, inventory: Inventory) -> None:
        """Use this engine and these look-ups."""
        self._engine, self._inventory = engine, inventory
        self._policies = {bound.title: bound for bound in engine.policies}

    def __call__(self, kind: Kind, object: Object, *, is_owned: bool) -> Judged | None:
        """Return the results for an object; if its owner is judged (`is_owned`), only of policies that judge both.

        None where there are no results.
        """
        metadata, api_version = object["metadata"], object["apiVersion"]
        namespace, name, uid = metadata.get("namespace", ""), metadata["name"], metadata["uid"]
        attributes = Attributes(
            uid=uid,
            operation="CREATE",
            group=kind.group,
            version=api_version.rpartition("/")[2],
            kind=kind.kind,
            resource_group=kind.group,
            resource=kind.plural,
            name=name,
            namespace=name if (kind.group, kind.kind) == ("", "Namespace") else namespace,
        )
        engine = self._engine.for_owned if is_owned else self._engine
        verdict = engine.validate(Request(attributes, object, None, self._inventory.about(namespace)))
        results = tuple(dict.fromkeys(self._results(verdict)))
        return Judged(api_version, kind.kind, namespace, name, uid, results) if results else None

    def _results(self, verdict: Verdict) -> Iterator[Result]:
        for outcome in verdict.outcomes:
            if outcome.malformed is not None:
                yield self._result(outcome, outcome.malformed.where, outcome.malformed.message, "fail")
            elif outcome.error is not None:
                yield self._result(outcome, "", failure(outcome), "error")
            else:
                level = next(LEVELS[action] for action in LEVELS if action in outcome.actions)
                for each in outcome.violations:
                    yield self._result(outcome, each.where, each.message, level)

    def _result(self, outcome: Outcome, path: str, message: str, level: Level) -> Result:
        bound = self._policies.get(outcome.policy)
        if bound is None:  # from a kind's type or its planner
            return Result(outcome.policy, "", path, message, level, "high", "kinds")
        return Result(outcome.policy, bound.policy.name, path, message, level, bound.severity, bound.category)
