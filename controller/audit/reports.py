"""Reports of an audit, and which of them to write: openreports.io or wgpolicyk8s.io. Pure.

One report for each object with violations, named after its UID and owned by it, so that it is
deleted with the object. Only failures, warnings and errors are reported, and at most MAX_REPORTS
objects, the worst. One more report has the number of the others, for each policy.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple

import orjson

from controller.audit.results import ObjectResults, ReportResult
from controller.audit.violators import MAX_RESULTS, MAX_TOTAL, Violators
from kube.resource import GroupKind, JsonObject, Resource, group_kind

SOURCE = "gatewright"
MANAGED = {"app.kubernetes.io/managed-by": SOURCE}
SELECTOR = f"app.kubernetes.io/managed-by={SOURCE}"
HASH = "gatewright.io/results"  # annotation: a digest of the results without their times
TRUNCATED = "gatewright-truncated"
MAX_MESSAGE = 1_000  # characters
REPORTED = ("fail", "warn", "error")

ReportFormat = Literal["openreports", "wgpolicyk8s"]


class ReportResources(NamedTuple):
    """The resources of one report API."""

    namespaced: Resource
    cluster: Resource

    def of(self, namespace: str) -> Resource:
        """Return the resource of reports about objects in `namespace`.

        "" for cluster-scoped objects.
        """
        return self.namespaced if namespace else self.cluster


KINDS: dict[ReportFormat, ReportResources] = {
    "openreports": ReportResources(
        Resource("openreports.io", "v1alpha1", "reports", "Report"),
        Resource("openreports.io", "v1alpha1", "clusterreports", "ClusterReport", namespaced=False),
    ),
    "wgpolicyk8s": ReportResources(
        Resource("wgpolicyk8s.io", "v1alpha2", "policyreports", "PolicyReport"),
        Resource(
            "wgpolicyk8s.io",
            "v1alpha2",
            "clusterpolicyreports",
            "ClusterPolicyReport",
            namespaced=False,
        ),
    ),
}


class Stored(NamedTuple):
    """The metadata of a stored report."""

    namespace: str
    name: str
    digest: str
    about: GroupKind  # of its object

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> "Stored":
        """Return the stored report with this metadata."""
        owner = (metadata.get("ownerReferences") or [{}])[0]
        digest = (metadata.get("annotations") or {}).get(HASH, "")
        return cls(metadata.get("namespace", ""), metadata["name"], digest, group_kind(owner))


class ReportChanges(NamedTuple):
    """The writes that bring the reports in the cluster up to date."""

    apply: tuple[ObjectResults, ...]
    delete: tuple[Stored, ...]


def changes(
    judged: Violators, existing: Iterable[Stored], unread: Collection[GroupKind]
) -> ReportChanges:
    """Return the objects whose reports to apply, and the reports to delete.

    Reports about kinds that could not be listed (`unread`) stay.
    """
    there = {(each.namespace, each.name): each for each in existing}
    violating = {(each.namespace, each.uid) for each in judged.worst}
    staying = sum(each.about in unread and key not in violating for key, each in there.items())
    kept = judged.worst[: max(judged.max_reports - staying, 0)]
    desired = {(each.namespace, each.uid): each for each in kept}
    if len(kept) < judged.number:
        desired["", TRUNCATED] = summarise_truncated(judged, kept)
    apply = (
        report
        for key, report in desired.items()
        if key not in there or there[key].digest != digest(report)
    )
    obsolete = (
        report for key, report in there.items() if key not in desired and report.about not in unread
    )
    return ReportChanges(tuple(apply), tuple(obsolete))


def summarise_truncated(judged: Violators, kept: Collection[ObjectResults]) -> ObjectResults:
    """Return the summary report with the number of objects whose reports are left out.

    It has a result for all of them, and one for each policy.
    """
    number = judged.number - len(kept)
    message = (
        f"{number:,} of {judged.number:,} objects with violations are not reported: the worst "
        f"{judged.max_reports:,} are, with at most {MAX_TOTAL:,} results"
    )
    results = [ReportResult(SOURCE, "audit", "", message, "warn", "medium", "audit")]
    reported = Counter(policy for each in kept for policy in {one.policy for one in each.results})
    for policy, left_out in sorted((judged.objects - reported).items()):
        total = judged.objects[policy]
        text = f"{left_out:,} of {total:,} objects with violations of this policy are not reported"
        results.append(judged.examples[policy]._replace(path="", message=text, result="warn"))
    return ObjectResults("", "", "", "", TRUNCATED, tuple(results))


def digest(judged: ObjectResults) -> str:
    """Return a digest of an object's results; a report with an equal digest needs no write."""
    return hashlib.sha256(orjson.dumps([*map(tuple, judged.results)])).hexdigest()[:32]


def report(judged: ObjectResults, format: ReportFormat, now: datetime) -> JsonObject:
    """Return the report of one object, its results found `now`."""
    resource = KINDS[format].of(judged.namespace)
    namespace = {"namespace": judged.namespace} if judged.namespace else {}
    metadata: JsonObject = {
        "name": judged.uid,
        **namespace,
        "labels": MANAGED,
        "annotations": {HASH: digest(judged)},
    }
    written: JsonObject = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "summary": {"pass": 0, "skip": 0, **{each: _number(judged, each) for each in REPORTED}},
        "results": [_entry(each, now) for each in judged.results[:MAX_RESULTS]],
    }
    if judged.kind:
        reference = {
            "apiVersion": judged.api_version,
            "kind": judged.kind,
            "name": judged.name,
            "uid": judged.uid,
        }
        metadata["ownerReferences"] = [reference]
        written["scope"] = {**reference, **namespace}
    if format == "openreports":
        written["source"] = SOURCE
        written["configuration"] = {
            "limits": {"maxResults": MAX_RESULTS, "statusFilter": [*REPORTED]}
        }
    return written


def with_first_seen(new: JsonObject, old: Mapping[str, Any]) -> JsonObject:
    """Return a report whose results keep the time of their first occurrence in the stored one."""
    timestamps = {
        _same(result): result["timestamp"]
        for result in old.get("results") or ()
        if "timestamp" in result
    }
    results = [
        {**result, "timestamp": timestamps.get(_same(result), result["timestamp"])}
        for result in new["results"]
    ]
    return {**new, "results": results}


def _same(result: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        result.get("policy"),
        result.get("rule"),
        (result.get("properties") or {}).get("path"),
        result.get("message"),
    )


def _number(judged: ObjectResults, level: str) -> int:
    return sum(each.result == level for each in judged.results)


def _entry(result: ReportResult, now: datetime) -> JsonObject:
    message = result.message
    entry = {
        "source": SOURCE,
        "policy": result.policy,
        "rule": result.rule,
        "category": result.category,
        "severity": result.severity,
        "result": result.result,
        "scored": result.result != "warn",
        "message": message if len(message) <= MAX_MESSAGE else f"{message[: MAX_MESSAGE - 1]}…",
        "timestamp": {"seconds": int(now.timestamp()), "nanos": 0},
        "properties": {"path": result.path} if result.path else {},
    }
    return {key: value for key, value in entry.items() if value not in ("", {}, False)}
