"""Which reports an audit writes, and their content, as a pure function."""

from datetime import UTC, datetime, timedelta

import orjson

from controller.audit.reports import Stored, changes, digest, report, with_first_seen
from controller.audit.results import ObjectResults, ReportResult
from controller.audit.violators import MAX_REPORTS, Violators

NOW = datetime(2026, 11, 1, tzinfo=UTC)
SECONDS = int(NOW.timestamp())
NOTHING_UNREAD: set[tuple[str, str]] = set()
RESULT = ReportResult(
    "few",
    "replica-limits",
    "spec.replicas",
    "spec.replicas: 30; too many. Lower it.",
    "fail",
    "high",
    "capacity",
)


def judged(name="shop", namespace="web", *results):
    """An object with violations."""
    return ObjectResults(
        "apps/v1", "Deployment", namespace, name, f"uid-{name}", results or (RESULT,)
    )


def violators(*several, max_reports=MAX_REPORTS):
    """The objects with violations of an audit."""
    found = Violators(max_reports)
    for judged_object in several:
        found.add(judged_object)
    return found


def stored(each):
    """The report of an object as a list of metadata shows it."""
    return Stored(each.namespace, each.uid, digest(each), ("apps", "Deployment"))


def test_a_report_is_what_other_tools_read():
    """Every field, as openreports.io has it: named after the object's UID, and owned by it."""
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop", "uid": "uid-shop"}
    assert report(judged(), "openreports", NOW) == {
        "apiVersion": "openreports.io/v1alpha1",
        "kind": "Report",
        "metadata": {
            "name": "uid-shop",
            "namespace": "web",
            "labels": {"app.kubernetes.io/managed-by": "gatewright"},
            "annotations": {"gatewright.io/results": digest(judged())},
            "ownerReferences": [reference],
        },
        "scope": {**reference, "namespace": "web"},
        "summary": {"pass": 0, "skip": 0, "fail": 1, "warn": 0, "error": 0},
        "results": [
            {
                "source": "gatewright",
                "policy": "few",
                "rule": "replica-limits",
                "category": "capacity",
                "severity": "high",
                "result": "fail",
                "scored": True,
                "message": "spec.replicas: 30; too many. Lower it.",
                "timestamp": {"seconds": SECONDS, "nanos": 0},
                "properties": {"path": "spec.replicas"},
            }
        ],
        "source": "gatewright",
        "configuration": {"limits": {"maxResults": 50, "statusFilter": ["fail", "warn", "error"]}},
    }


def test_the_older_api_has_neither_source_nor_configuration():
    """PolicyReport and ClusterPolicyReport (wgpolicyk8s.io/v1alpha2) lack both fields."""
    found = report(judged(namespace=""), "wgpolicyk8s", NOW)
    assert (found["apiVersion"], found["kind"], {"source", "configuration"} & found.keys()) == (
        "wgpolicyk8s.io/v1alpha2",
        "ClusterPolicyReport",
        set(),
    )


def test_only_what_changed_is_written():
    """A report with the same results is not written; a report without violations is deleted."""
    old, new, gone = judged("old"), judged("new"), judged("gone")
    changed = judged("changed", "web", RESULT._replace(message="another"))
    there = [stored(old), stored(gone), stored(judged("changed"))]
    planned = changes(violators(old, new, changed), there, NOTHING_UNREAD)
    assert [each.uid for each in planned.apply] == ["uid-changed", "uid-new"]
    assert planned.delete == (stored(gone),)


def test_reports_of_a_kind_that_could_not_be_listed_stay():
    """It is unknown whether their objects still violate a policy."""
    planned = changes(violators(), [stored(judged())], {("apps", "Deployment")})
    assert (planned.apply, planned.delete) == ((), ())


def test_a_report_that_stays_is_counted_once():
    """Its object was listed before the list failed; no object is left out."""
    both = [judged("a"), judged("b")]
    planned = changes(
        violators(both[0], max_reports=2), [*map(stored, both)], {("apps", "Deployment")}
    )
    assert (planned.apply, planned.delete) == ((), ())


def test_a_result_keeps_the_time_at_which_it_was_first_found():
    """Another result of the same object has its own time."""
    old = report(judged(), "openreports", NOW)
    later = NOW + timedelta(hours=1)
    second = RESULT._replace(path="spec.other", message="spec.other: 1; no. Remove it.")
    new = with_first_seen(report(judged("shop", "web", RESULT, second), "openreports", later), old)
    assert [each["timestamp"]["seconds"] for each in new["results"]] == [SECONDS, SECONDS + 3600]


def test_a_cap_keeps_the_worst_and_counts_the_others():
    """One more report has the number of omitted objects, and that for each policy.

    The order is stable, so that the next audit writes nothing.
    """
    low = RESULT._replace(policy="named", severity="low")
    critical = RESULT._replace(policy="held", severity="critical")
    warned = critical._replace(policy="asked", result="warn")
    many = [
        judged("c"),
        judged("a", "web", low, RESULT),
        judged("d", "web", warned, low),
        judged("b", "web", low, critical),
    ]
    planned = changes(violators(*many, max_reports=2), [], NOTHING_UNREAD)
    assert [each.uid for each in planned.apply] == ["uid-b", "uid-a", "gatewright-truncated"]
    notice = report(planned.apply[-1], "openreports", NOW)
    assert [(each["policy"], each["message"]) for each in notice["results"]] == [
        (
            "gatewright",
            "2 of 4 objects with violations are not reported: the worst 2 are, with at most "
            "30,000 results",
        ),
        ("asked", "1 of 1 objects with violations of this policy are not reported"),
        ("few", "1 of 2 objects with violations of this policy are not reported"),
        ("named", "1 of 3 objects with violations of this policy are not reported"),
    ]
    there = [stored(many[3]), stored(many[1]), Stored.of(notice["metadata"])]
    again = violators(*reversed(many), max_reports=2)
    unchanged = changes(again, there, NOTHING_UNREAD)
    assert (unchanged.apply, unchanged.delete) == ((), ())
    few = violators(many[3], many[1], max_reports=2)
    assert changes(few, there, NOTHING_UNREAD).delete == (there[2],)


def test_a_report_is_bounded_and_its_summary_is_not():
    """A report has at most 50 results, each with a message of at most 1,000 characters."""
    results = [RESULT._replace(path=f"spec.{index}", message="x" * 2000) for index in range(60)]
    found = report(judged("shop", "web", *results), "openreports", NOW)
    assert (len(found["results"]), found["summary"]["fail"]) == (50, 60)
    assert {len(each["message"]) for each in found["results"]} == {1000}


def test_all_reports_together_are_bounded():
    """100,000 violations of 10,000 objects stay below 50 MB, however long their messages are."""
    results = tuple(
        RESULT._replace(path=f"spec.f{index}", message="x" * 1_000) for index in range(10)
    )
    many = [judged(f"object-{number:05}", "web", *results) for number in range(10_000)]
    planned = changes(violators(*many), [], NOTHING_UNREAD)
    assert len(planned.apply) == 3_001
    assert (
        sum(len(orjson.dumps(report(each, "openreports", NOW))) for each in planned.apply)
        < 50 * 1024 * 1024
    )


def test_an_unknown_severity_is_the_least():
    """A policy in code may have any: its violators are kept after the others, and none is lost."""
    severities = ("strange", "info", "low", "critical")
    several = [judged(each, "web", RESULT._replace(severity=each)) for each in severities]
    assert [each.name for each in violators(*several).worst] == [
        "critical",
        "low",
        "info",
        "strange",
    ]
