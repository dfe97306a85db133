"""The results of an audit for one object, one for each violation, as in a Report. Pure."""

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from kube.resource import JsonObject
from webhook.engine import BoundPolicy, Verdict
from webhook.findings import findings

ReportLevel = Literal["fail", "warn", "error"]
LEVELS: dict[str, ReportLevel] = {"Deny": "fail", "Warn": "warn", "Audit": "warn"}


class ReportResult(NamedTuple):
    """One violation of a policy by an object: `result` is fail, warn or error, as in a Report."""

    policy: str
    rule: str  # the built-in policy, or "" if the policy object has its own rules
    path: str
    message: str
    result: ReportLevel
    severity: str
    category: str


class ObjectResults(NamedTuple):
    """An object with at least one result."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    results: tuple[ReportResult, ...]


def results_of(
    object: JsonObject, verdict: Verdict, policies: Mapping[str, BoundPolicy]
) -> ObjectResults | None:
    """Return the results for an object of a cluster by policies (by title).

    None if there are none.
    """
    if verdict.is_plain:
        return None
    results = tuple(dict.fromkeys(_results(verdict, policies)))
    metadata = object["metadata"]
    named = metadata.get("namespace", ""), metadata["name"], metadata["uid"]
    return ObjectResults(object["apiVersion"], object["kind"], *named, results) if results else None


def _results(verdict: Verdict, policies: Mapping[str, BoundPolicy]) -> Iterator[ReportResult]:
    for finding in findings(verdict.outcomes):
        level: ReportLevel = "error" if finding.violation is None else LEVELS[finding.action]
        bound = policies.get(finding.policy)
        if bound is None:  # from a kind's type or its planner
            yield ReportResult(
                finding.policy, "", finding.path, finding.message, level, "high", "kinds"
            )
        else:
            yield ReportResult(
                finding.policy,
                bound.policy.name,
                finding.path,
                finding.message,
                level,
                bound.policy.severity,
                bound.policy.category,
            )
