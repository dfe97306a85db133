"""Reports (openreports.io/v1alpha1, or wgpolicyk8s.io/v1alpha2) of an audit, and which of them to write. Pure.

One report for each object with violations, named after its UID and owned by it, so that it goes with the object. Only
failures, warnings and errors are reported, and at most MAX_REPORTS objects, in a stable order.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Any, Literal, NamedTuple

import orjson

from controller.audit.judge import Finding, Judged
from kube.resource import Resource

SOURCE = "gatewright"
MANAGED = {"app.kubernetes.io/managed-by": SOURCE}
SELECTOR = f"app.kubernetes.io/managed-by={SOURCE}"
KIND_LABEL = "gatewright.io/audited-kind"
HASH = "gatewright.io/results"  # annotation: a digest of the results without their times
TRUNCATED = "gatewright-truncated"
MAX_REPORTS = 5_000
MAX_RESULTS = 50  # of one report; the summary counts all
MAX_TOTAL = 30_000  # results of all reports: about 40 MB in etcd at most
MAX_MESSAGE = 1_000  # characters
REPORTED = ("fail", "warn", "error")

Object = dict[str, Any]
Format = Literal["openreports", "wgpolicyk8s"]


class Kinds(NamedTuple):
    """The resources of one report API."""

    namespaced: Resource
    cluster: Resource


KINDS: dict[Format, Kinds] = {
    "openreports": Kinds(
        Resource("openreports.io", "v1alpha1", "reports", "Report"),
        Resource("openreports.io", "v1alpha1", "clusterreports", "ClusterReport", namespaced=False),
    ),
    "wgpolicyk8s": Kinds(
        Resource("wgpolicyk8s.io", "v1alpha2", "policyreports", "PolicyReport"),
        Resource("wgpolicyk8s.io", "v1alpha2", "clusterpolicyreports", "ClusterPolicyReport", namespaced=False),
    ),
}


class Stored(NamedTuple):
    """What is known of a report in the cluster without reading it."""

    namespace: str
    name: str
    digest: str
    audited_kind: str


@dataclass(frozen=True, slots=True)
class Changes:
    """The writes that bring the reports in the cluster up to date."""

    apply: tuple[Object, ...]
    delete: tuple[Stored, ...]


def stored_of(metadata: Mapping[str, Any]) -> Stored:
    """Return what the metadata of a report says."""
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    namespace = metadata.get("namespace", "")
    return Stored(namespace, metadata["name"], annotations.get(HASH, ""), labels.get(KIND_LABEL, ""))


def changes(
    judged: Iterable[Judged], existing: Iterable[Stored], format: Format, now: datetime, unread: frozenset[str]
) -> Changes:
    """Return which reports to apply and delete. Those of kinds that could not be listed (`unread`) stay as they are."""
    there = {(each.namespace, each.name): each for each in existing}
    ordered = sorted(judged, key=lambda each: (each.namespace, each.kind, each.name, each.uid))
    room = MAX_REPORTS - sum(each.audited_kind in unread for each in there.values())
    totals = accumulate(min(len(each.findings), MAX_RESULTS) for each in ordered)
    room = min(room, sum(1 for total in totals if total <= MAX_TOTAL))
    wanted = {(each.namespace, each.uid): each for each in ordered[:room]}
    apply = [
        report(each, format, now)
        for key, each in wanted.items()
        if key not in there or there[key].digest != digest(each)
    ]
    left_out = ordered[room:]
    if left_out:
        notice = truncated(len(left_out), len(ordered), format, now)
        if ("", TRUNCATED) not in there or there["", TRUNCATED].digest != notice["metadata"]["annotations"][HASH]:
            apply.append(notice)
    kept = wanted.keys() | ({("", TRUNCATED)} if left_out else set())
    gone = (each for key, each in there.items() if key not in kept and each.audited_kind not in unread)
    return Changes(tuple(apply), tuple(gone))


def label(group: str, kind: str) -> str:
    """Return what names a kind in KIND_LABEL."""
    return f"{kind}.{group}".rstrip(".")


def digest(judged: Judged) -> str:
    """Return a digest of what is reported of an object: equal digests need no write."""
    return hashlib.sha256(orjson.dumps([*map(tuple, judged.findings)])).hexdigest()[:32]


def report(judged: Judged, format: Format, now: datetime) -> Object:
    """Return the report of one object, its results found `now`."""
    kinds = KINDS[format]
    resource = kinds.namespaced if judged.namespace else kinds.cluster
    reference = {"apiVersion": judged.api_version, "kind": judged.kind, "name": judged.name, "uid": judged.uid}
    group = judged.api_version.rpartition("/")[0]
    named: dict[str, str] = {"namespace": judged.namespace} if judged.namespace else {}
    body: Object = {
        "metadata": {
            "name": judged.uid,
            **named,
            "labels": {**MANAGED, KIND_LABEL: label(group, judged.kind)},
            "annotations": {HASH: digest(judged)},
            "ownerReferences": [reference],
        },
        "scope": {**reference, **named},
        "summary": _summary(judged.findings),
        "results": [_result(each, now) for each in judged.findings[:MAX_RESULTS]],
    }
    return _of_format(resource, body, format)


def truncated(left_out: int, total: int, format: Format, now: datetime) -> Object:
    """Return the one report that says how many objects with violations are not reported."""
    message = (
        f"{left_out:,} of {total:,} objects with violations are not reported: at most {MAX_REPORTS:,} reports "
        f"and {MAX_TOTAL:,} results are kept"
    )
    finding = Finding(SOURCE, "audit", "", message, "warn", "medium", "audit")
    body: Object = {
        "metadata": {
            "name": TRUNCATED,
            "labels": MANAGED,
            "annotations": {HASH: hashlib.sha256(message.encode()).hexdigest()[:32]},
        },
        "summary": _summary((finding,)),
        "results": [_result(finding, now)],
    }
    return _of_format(KINDS[format].cluster, body, format)


def with_first_seen(new: Object, old: Mapping[str, Any]) -> Object:
    """Return a report whose results keep the time at which the stored one first had them."""
    seen = {_same(each): each["timestamp"] for each in old.get("results") or () if "timestamp" in each}
    results = [{**each, "timestamp": seen.get(_same(each), each["timestamp"])} for each in new["results"]]
    return {**new, "results": results}


def _same(result: Mapping[str, Any]) -> tuple[Any, ...]:
    return result.get("policy"), result.get("rule"), (result.get("properties") or {}).get("path"), result.get("message")


def _of_format(resource: Resource, body: Object, format: Format) -> Object:
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    if format == "wgpolicyk8s":
        return head | body
    return {
        **head,
        **body,
        "source": SOURCE,
        "configuration": {"limits": {"maxResults": MAX_RESULTS, "statusFilter": [*REPORTED]}},
    }


def _summary(findings: tuple[Finding, ...]) -> dict[str, int]:
    counted = {name: sum(each.result == name for each in findings) for name in REPORTED}
    return {"pass": 0, "skip": 0, **counted}


def _result(finding: Finding, now: datetime) -> Object:
    message = finding.message
    result = {
        "source": SOURCE,
        "policy": finding.policy,
        "rule": finding.rule,
        "category": finding.category,
        "severity": finding.severity,
        "result": finding.result,
        "scored": finding.result != "warn",
        "message": message if len(message) <= MAX_MESSAGE else f"{message[: MAX_MESSAGE - 1]}…",
        "timestamp": {"seconds": int(now.timestamp()), "nanos": 0},
        "properties": {"path": finding.path} if finding.path else {},
    }
    return {key: value for key, value in result.items() if value not in ("", {}, False)}
