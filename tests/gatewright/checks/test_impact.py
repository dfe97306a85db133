"""`gatewright impact`: compare two policy sets, or two dates, on the same objects."""

import json
from pathlib import Path

import pytest

from gatewright.cli import main

POLICY = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: few}
spec: {policy: replica-limits, params: {maximum: %d}, validationActions: [%s]}
"""
SECURE = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: secure}
spec: {policy: security-defaults}
"""
RULE = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: data}
spec:
  match: {any: [{kinds: [example.com/v1/Datum]}]}
  validations: [{expression: object.spec.replicas < 9, message: too many}]
"""
EXCEPTION = """\
---
apiVersion: gatewright.io/v1alpha1
kind: PolicyException
metadata: {name: sale}
spec: {reason: sale, expires: "2099-02-01T00:00:00Z", exceptions: [{policy: few, names: [shop]}]}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: web}
spec: {replicas: %d}
"""
SETS = ("twenty.yaml", "five.yaml")
DENIED = "spec.replicas: 11; production workloads cannot exceed 5 replicas. Set it to 5 or less."


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Return a directory with three policy sets and two Deployments."""
    monkeypatch.chdir(tmp_path)
    Path("twenty.yaml").write_text(POLICY % (20, "Deny"))
    Path("five.yaml").write_text(POLICY % (5, "Deny"))
    Path("warn.yaml").write_text(POLICY % (5, "Warn"))
    Path("shop.yaml").write_text(f"{DEPLOYMENT % ('shop', 11)}---\n{DEPLOYMENT % ('small', 3)}")


@pytest.fixture
def impact(capsys):
    """Run `gatewright impact`; return exit code, stdout and stderr."""

    def _impact(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["impact", *arguments])
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return _impact


def test_newly_denied_objects_are_an_error(impact):
    """The exit code is 1, with the new violations; unchanged objects are only counted."""
    assert impact("twenty.yaml", "five.yaml", "shop.yaml") == (
        1,
        "newly denied  Deployment web/shop  (shop.yaml:1)\n"
        f"  shop.yaml:4: few: {DENIED}\n"
        "2 objects: 1 newly denied, 1 unchanged\n",
        "",
    )


def test_no_longer_denied_objects_are_no_error(impact):
    """The violations that disappear are listed."""
    assert impact("five.yaml", "twenty.yaml", "shop.yaml") == (
        0,
        "no longer denied  Deployment web/shop  (shop.yaml:1)\n"
        f"  shop.yaml:4: few: no longer: {DENIED}\n"
        "2 objects: 1 no longer denied, 1 unchanged\n",
        "",
    )


def test_denials_are_listed_where_the_old_set_cannot_decide(impact):
    """Whether they are new is unknown; the exit code is 3."""
    where = "match: {any: [{namespaceSelector: {matchLabels: {tier: web}}}]}"
    undecided = POLICY.replace("spec: {", f"spec: {{{where}, ").replace("few", "web")
    Path("old.yaml").write_text(undecided % (5, "Deny"))
    Path("new.yaml").write_text(f"{undecided % (5, 'Deny')}---\n{POLICY % (5, 'Deny')}")
    code, out, _ = impact("old.yaml", "new.yaml", "shop.yaml")
    head, undecided, denied, counts = out.splitlines()
    assert (code, head) == (3, "error  Deployment web/shop  (shop.yaml:1)")
    assert undecided.startswith(
        "  shop.yaml:1: web: cannot be decided: the labels of namespace web"
    )
    assert denied == f"  shop.yaml:4: few: {DENIED}"
    assert counts == "2 objects: 1 error, 1 unchanged"


def test_another_limit_alone_is_no_change(impact):
    """An object beyond both limits is denied as before."""
    Path("six.yaml").write_text(POLICY % (6, "Deny"))
    assert impact("six.yaml", "five.yaml", "shop.yaml") == (0, "2 objects: 2 unchanged\n", "")


def test_markdown_begins_with_the_number_of_new_denials(impact):
    """The heading has the number; the command has not failed."""
    heads = [
        impact(*sets, "shop.yaml", "-o", "markdown")[1].splitlines()[0]
        for sets in (SETS, SETS[::-1])
    ]
    assert heads == [
        "### Gatewright impact: objects become denied",
        "### Gatewright impact: nothing becomes denied",
    ]


def test_a_denial_that_becomes_a_warning(impact):
    """Both verdicts are shown."""
    code, out, _ = impact("five.yaml", "warn.yaml", "shop.yaml")
    assert (code, out.splitlines()[0]) == (
        0,
        "no longer denied  Deployment web/shop  (shop.yaml:1)",
    )
    assert impact("twenty.yaml", "warn.yaml", "shop.yaml") == (
        0,
        "newly warned  Deployment web/shop  (shop.yaml:1)\n"
        f"  shop.yaml:4: few (warn): {DENIED}\n"
        "2 objects: 1 newly warned, 1 unchanged\n",
        "",
    )


def test_a_warning_that_disappears_is_a_change(impact):
    """It is listed, also where the object stays denied; nothing becomes denied."""
    gone = f"few (warn): no longer: {DENIED}\n"
    Path("other.yaml").write_text(POLICY % (20, "Warn"))
    assert impact("warn.yaml", "other.yaml", "shop.yaml") == (
        0,
        "no longer warned  Deployment web/shop  (shop.yaml:1)\n"
        f"  shop.yaml:4: {gone}"
        "2 objects: 1 no longer warned, 1 unchanged\n",
        "",
    )
    denying = f"---\n{POLICY % (5, 'Deny')}".replace("few", "deny")
    for name in ("warn.yaml", "other.yaml"):
        Path(name).write_text(Path(name).read_text() + denying)
    code, out, _ = impact("warn.yaml", "other.yaml", "shop.yaml")
    assert (code, out.splitlines(keepends=True)[1]) == (0, f"  shop.yaml:4: {gone}")


def test_a_changed_patch_is_listed(impact):
    """The operations of the new policies are shown."""
    Path("none.yaml").write_text(POLICY % (20, "Deny"))
    Path("secure.yaml").write_text(f"{SECURE}---\n{POLICY % (20, 'Deny')}")
    Path("pod.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: one, namespace: web}\n"
        "spec: {containers: [{name: app, image: a.example/app:1}]}\n"
    )
    code, out, _ = impact("none.yaml", "secure.yaml", "pod.yaml")
    assert (code, out.splitlines()[0]) == (0, "patched otherwise  Pod web/one  (pod.yaml:1)")
    assert "1 object: 1 patched otherwise" in out


def test_another_date_expires_exceptions(impact):
    """The same set twice, with --at, lists the objects denied after the exceptions expire."""
    Path("sale.yaml").write_text(POLICY % (5, "Deny") + EXCEPTION)
    assert impact("sale.yaml", "sale.yaml", "shop.yaml", "--at", "2099-01-31")[:2] == (
        0,
        "2 objects: 2 unchanged\n",
    )
    code, out, err = impact("sale.yaml", "sale.yaml", "shop.yaml", "--at", "2099-02-01")
    assert (code, out.splitlines()[0]) == (1, "newly denied  Deployment web/shop  (shop.yaml:1)")
    assert err == (
        "note: sale.yaml:9: PolicyException sale: has no effect: spec.expires: it expired at 2099-02-01T00:00:00Z\n"
    )


def review(name, replicas, operation="CREATE", old=None):
    """Return one recorded AdmissionReview for a Deployment."""

    def deployment(number):
        metadata = {"name": name, "namespace": "web"}
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {"replicas": number},
        }

    request = {
        "uid": "1",
        "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
        "name": name,
        "namespace": "web",
        "operation": operation,
        "userInfo": {"username": "alice", "groups": []},
        "object": deployment(replicas),
        "oldObject": None if old is None else deployment(old),
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def test_recorded_reviews_are_judged_unchanged(impact):
    """An update with an existing violation is allowed, as in the webhook. A bad line hides no other."""
    lines = [review("new", 11), review("old", 11, "UPDATE", old=11)]
    Path("reviews.jsonl").write_text("\n".join([json.dumps(lines[0]), "{", json.dumps(lines[1])]))
    code, out, err = impact("twenty.yaml", "five.yaml", "--reviews", "reviews.jsonl")
    assert (code, out.splitlines()[0], out.splitlines()[-1]) == (
        3,
        "newly denied  Deployment web/new  (reviews.jsonl:1)",
        "2 objects: 1 newly denied, 1 unchanged",
    )
    assert err.startswith("reviews.jsonl:2: not JSON: ")


def test_a_wrong_plural_of_a_recorded_kind_is_an_error(impact):
    """The rule would judge no object of the kind; with the plural of the reviews, it does."""
    Path("data.yaml").write_text(RULE)
    recorded = review("new", 11)
    recorded["request"] |= {
        "kind": {"group": "example.com", "version": "v1", "kind": "Datum"},
        "resource": {"group": "example.com", "version": "v1", "resource": "data"},
    }
    recorded["request"]["object"] |= {"apiVersion": "example.com/v1", "kind": "Datum"}
    Path("reviews.jsonl").write_text(json.dumps(recorded))
    in_full = "data.example.com/v1/Datum"
    assert impact("twenty.yaml", "data.yaml", "--reviews", "reviews.jsonl")[::2] == (
        3,
        "data.yaml:5: ClusterAdmissionPolicy data: spec.match.any[0].kinds: no API serves "
        f"datums.example.com; write {in_full}\n",
    )
    Path("data.yaml").write_text(RULE.replace("example.com/v1/Datum", in_full))
    assert impact("twenty.yaml", "data.yaml", "--reviews", "reviews.jsonl")[0] == 1


def test_a_denied_review_is_not_patched(impact):
    """Policies that set fields change nothing of a request that is denied anyway."""
    Path("both.yaml").write_text(f"{SECURE}---\n{POLICY % (5, 'Deny')}")
    denied = review("new", 11)
    denied["request"]["object"]["spec"]["template"] = {"spec": {"containers": [{"name": "app"}]}}
    Path("reviews.jsonl").write_text(json.dumps(denied))
    assert impact("five.yaml", "both.yaml", "--reviews", "reviews.jsonl") == (
        0,
        "1 object: 1 unchanged\n",
        "",
    )


def test_recorded_reviews_without_an_object_of_their_own_are_judged(impact):
    """Options of exec have no name, and a connection to a Service's proxy may have no object."""
    execs, bare, odd = (review("shop", 11, "CONNECT") for _ in range(3))
    execs["request"] |= {
        "kind": {"group": "", "version": "v1", "kind": "PodExecOptions"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "subResource": "exec",
        "object": {"apiVersion": "v1", "kind": "PodExecOptions", "command": ["sh"]},
    }
    bare["request"] |= {"object": None}
    odd["request"] |= {"object": {"metadata": "odd"}}
    Path("reviews.jsonl").write_text("\n".join(map(json.dumps, (execs, bare, odd))))
    assert impact("twenty.yaml", "five.yaml", "--reviews", "reviews.jsonl") == (
        0,
        "3 objects: 3 unchanged\n",
        "",
    )


def test_an_audit_log_of_the_api_server_is_judged(impact):
    """Finished writes with objects are judged; reads, deletes and events without an object are skipped."""
    written = review("new", 11)["request"]["object"]
    event = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Event",
        "auditID": "1",
        "stage": "ResponseComplete",
        "verb": "create",
        "user": {"username": "alice"},
        "objectRef": {
            "apiGroup": "apps",
            "apiVersion": "v1",
            "resource": "deployments",
            "namespace": "web",
        },
        "responseStatus": {"code": 201},
        "responseObject": written,
    }
    others = [
        {**event, "verb": "get"},
        {**event, "stage": "RequestReceived"},
        {**event, "responseObject": None},
    ]
    Path("audit.log").write_text("\n".join(map(json.dumps, [event, *others])))
    code, out, err = impact("twenty.yaml", "five.yaml", "--reviews", "audit.log")
    assert (code, out.splitlines()[-1], err) == (1, "1 object: 1 newly denied", "")


def test_an_audit_log_without_objects_is_a_problem(impact):
    """Level Metadata is not enough, and a damaged event hides no other line."""
    event = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Event",
        "stage": "ResponseComplete",
        "verb": "create",
    }
    Path("audit.log").write_text(json.dumps(event))
    assert impact("twenty.yaml", "five.yaml", "--reviews", "audit.log")[::2] == (
        3,
        "audit.log: no event has the object that was written; record level Request or RequestResponse\n",
    )
    written = {**event, "responseObject": {"kind": "Deployment"}}
    damaged = [{**written, field: "?"} for field in ("objectRef", "responseStatus", "user")]
    Path("audit.log").write_text("\n".join(map(json.dumps, [*damaged, review("new", 3)])))
    code, out, err = impact("twenty.yaml", "five.yaml", "--reviews", "audit.log")
    assert (code, out) == (3, "1 object: 1 unchanged\n")
    assert err.splitlines() == [f"audit.log:{line}: not a valid audit Event" for line in (1, 2, 3)]


def test_objects_are_required(impact):
    """A command without objects is a usage error."""
    code, _, err = impact("twenty.yaml", "five.yaml")
    assert (code, err.splitlines()[-1]) == (
        2,
        "Error: name MANIFESTs, recorded --reviews, or a cluster by --kubeconfig",
    )
