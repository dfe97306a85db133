"""Judges objects that stand in the cluster, as the webhook would judge their creation. Pure."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from webhook.engine import Attributes, Engine, Outcome, Request, Verdict
from webhook.engine.kinds import Kind
from webhook.messages import failure

RESULTS: dict[str, Literal["fail", "warn"]] = {"Deny": "fail", "Warn": "warn", "Audit": "warn"}  # the first that holds

Object = dict[str, Any]


class Finding(NamedTuple):
    """One violation of a policy by an object: `result` is fail, warn or error, as in a Report."""

    policy: str
    rule: str  # the built-in policy, or "" where the policy object has rules of its own
    path: str
    message: str
    result: Literal["fail", "warn", "error"]
    severity: str
    category: str


class Judged(NamedTuple):
    """An object with its findings, one at least."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    findings: tuple[Finding, ...]


class Judge:
    """Judges objects by one engine."""

    def __init__(self, engine: Engine, planned: Collection[tuple[str, str]] = ()) -> None:
        """Know which kinds the engine judges, and by which policies.

        `planned` are group and plural of the kinds whose children are judged with them.
        """
        self._engine, self._planned = engine, planned
        self._policies = {bound.title: bound for bound in engine.policies}
        self.kinds = dict(_judged_kinds(engine))
        self._by_name = {(kind.group, kind.kind): kind for kind in self.kinds}

    def is_covered_by_owner(self, kind: Kind, object: Object) -> bool:
        """Whether the owner of an object is judged by the same policies: its pod template says the same."""
        for owner in object["metadata"].get("ownerReferences") or ():
            group = owner["apiVersion"].rpartition("/")[0]
            above = self._by_name.get((group, owner["kind"])) if owner.get("controller") else None
            if above is None:
                continue
            if self.kinds[kind] <= self.kinds[above] or (above.group, above.plural) in self._planned:
                return True
        return False

    def __call__(self, kind: Kind, object: Object, looked_up: Mapping[str, Any]) -> Judged | None:
        """Return what is wrong with an object; None where nothing is, or where it is being deleted."""
        metadata = object["metadata"]
        if metadata.get("deletionTimestamp") is not None:
            return None
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        version = object["apiVersion"].rpartition("/")[2]
        attributes = Attributes(
            uid=metadata["uid"],
            operation="CREATE",
            group=kind.group,
            version=version,
            kind=kind.kind,
            resource_group=kind.group,
            resource=kind.plural,
            name=name,
            namespace=name if (kind.group, kind.kind) == ("", "Namespace") else namespace,
        )
        verdict = self._engine.validate(Request(attributes, object, None, looked_up))
        findings = tuple(dict.fromkeys(self._findings(verdict)))
        return Judged(object["apiVersion"], kind.kind, namespace, name, metadata["uid"], findings) if findings else None

    def _findings(self, verdict: Verdict) -> Iterator[Finding]:
        for outcome in verdict.outcomes:
            if outcome.malformed is not None:
                yield self._finding(outcome, outcome.malformed.where, outcome.malformed.message, "fail")
            elif outcome.error is not None:
                yield self._finding(outcome, "", failure(outcome), "error")
            else:
                result = next(RESULTS[action] for action in RESULTS if action in outcome.actions)
                for each in outcome.violations:
                    yield self._finding(outcome, each.where, each.message, result)

    def _finding(self, outcome: Outcome, path: str, message: str, result: Literal["fail", "warn", "error"]) -> Finding:
        bound = self._policies.get(outcome.policy)
        severity, category = (bound.severity, bound.category) if bound is not None else ("high", "kinds")
        rule = bound.policy.name if bound is not None else ""
        return Finding(outcome.policy, rule, path, message, result, severity, category)


def _judged_kinds(engine: Engine) -> Iterator[tuple[Kind, frozenset[str]]]:
    """Yield each kind whose objects are judged when they are created, with the policies that judge it."""
    targets = {
        target.kind
        for fails_closed in (True, False)
        for target in engine.targets(mutating=False, fails_closed=fails_closed)
        if not target.subresource and "CREATE" in target.operations
    }
    for kind in sorted(targets, key=lambda kind: (kind.group, kind.kind)):
        yield (
            kind,
            frozenset(
                bound.title
                for bound in engine.policies
                if bound.match.for_kind(kind) is not None and any(each.kind == kind for each in bound.policy.targets)
            ),
        )
