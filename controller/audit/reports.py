"""Reports of an audit, and which of them to write: openreports.io or wgpolicyk8s.io. Pure.

One report for each object with violations, named after its UID and owned by it, so that it is
deleted with the object. Only failures, warnings and errors are reported, and at most MAX_REPORTS
objects, in a stable order.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from itertools import accumulate
from typing import Any, Literal, NamedTuple

import orjson

from controller.audit.results import ObjectResults, ReportResult
from kube.resource import GroupKind, JsonObject, Resource, group_kind

SOURCE = "gatewright"
MANAGED = {"app.kubernetes.io/managed-by": SOURCE}
SELECTOR = f"app.kubernetes.io/managed-by={SOURCE}"
HASH = "gatewright.io/results"  # annotation: a digest of the results without their times
TRUNCATED = "gatewright-truncated"
MAX_REPORTS = 5_000
MAX_RESULTS = 50  # of one report; the summary counts all
MAX_TOTAL = 30_000  # results of all reports: about 40 MB in etcd at most
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
    judged: Iterable[ObjectResults], existing: Iterable[Stored], unread: Collection[GroupKind]
) -> ReportChanges:
    """Return the objects whose reports to apply, and the reports to delete.

    Reports about kinds that could not be listed (`unread`) stay.
    """
    there = {(each.namespace, each.name): each for each in existing}
    ordered = sorted(judged, key=lambda each: (each.namespace, each.kind, each.name, each.uid))
    found = {(each.namespace, each.uid) for each in ordered}
    totals = accumulate(min(len(each.results), MAX_RESULTS) for each in ordered)
    staying = sum(each.about in unread and key not in found for key, each in there.items())
    room = min(MAX_REPORTS - staying, sum(total <= MAX_TOTAL for total in totals))
    desired = {(each.namespace, each.uid): each for each in ordered[:room]}
    if left_out := ordered[room:]:
        desired["", TRUNCATED] = truncated(len(left_out), len(ordered))
    apply = (
        each
        for key, each in desired.items()
        if key not in there or there[key].digest != digest(each)
    )
    obsolete = (
        each for key, each in there.items() if key not in desired and each.about not in unread
    )
    return ReportChanges(tuple(apply), tuple(obsolete))


def truncated(left_out: int, total: int) -> ObjectResults:
    """Return the summary report with the number of objects whose reports are left out."""
    message = (
        f"{left_out:,} of {total:,} objects with violations are not reported: at most "
        f"{MAX_REPORTS:,} reports "
        f"and {MAX_TOTAL:,} results are kept"
    )
    result = ReportResult(SOURCE, "audit", "", message, "warn", "medium", "audit")
    return ObjectResults("", "", "", "", TRUNCATED, (result,))


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
    found: JsonObject = {
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
        found["scope"] = {**reference, **namespace}
    if format == "openreports":
        found["source"] = SOURCE
        found["configuration"] = {
            "limits": {"maxResults": MAX_RESULTS, "statusFilter": [*REPORTED]}
        }
    return found


def with_first_seen(new: JsonObject, old: Mapping[str, Any]) -> JsonObject:
    """Return a report whose results keep the time of their first occurrence in the stored one."""
    timestamps = {
        _same(each): each["timestamp"] for each in old.get("results") or () if "timestamp" in each
    }
    results = [
        {**each, "timestamp": timestamps.get(_same(each), each["timestamp"])}
        for each in new["results"]
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
