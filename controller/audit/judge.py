"""Judges objects that stand in the cluster, as the webhook would judge their creation. Pure."""

from collections.abc import Iterator, Mapping
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

    def __init__(self, engine: Engine) -> None:
        """Take the engine."""
        self._engine = engine
        self._policies = {bound.title: bound for bound in engine.policies}

    def __call__(self, kind: Kind, object: Object, looked_up: Mapping[str, Any]) -> Judged | None:
        """Return what is wrong with an object; None where nothing is."""
        metadata = object["metadata"]
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
