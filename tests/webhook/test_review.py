"""AdmissionReviews and responses: invalid ones are rejected with a reason, and a response is complete."""

import base64
import json
from dataclasses import replace

import orjson
import pytest

from tests.webhook.asking import about, ask, in_force
from webhook.engine import (
    MAX_VIOLATIONS,
    Engine,
    NotLookedUpError,
    Outcome,
    Patch,
    Policy,
    Request,
    Verdict,
    Violation,
    WrongTypeError,
)
from webhook.review import (
    MAX_WHOLE,
    MalformedRequestError,
    NotAReviewError,
    answer,
    deny_malformed,
    read,
)

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "it"}}
REQUEST = {
    "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
    "kind": {"group": "", "version": "v1", "kind": "Pod"},
    "resource": {"group": "", "version": "v1", "resource": "pods"},
    "operation": "CREATE",
    "name": "it",
    "namespace": "shop",
    "userInfo": {"username": "jane", "groups": ["system:authenticated"]},
    "object": POD,
    "oldObject": None,
    "dryRun": False,
}


def body(*without, **changes):
    """Return an encoded review of a Pod, changed by the test's arguments."""
    request = {key: value for key, value in (REQUEST | changes).items() if key not in without}
    return json.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    ).encode()


def test_a_review_is_parsed_completely():
    """The request has every field that policies may read."""
    changes = {
        "subResource": "ephemeralcontainers",
        "operation": "UPDATE",
        "oldObject": POD,
        "dryRun": True,
    }
    request = read(body(**changes))
    assert request.attributes._replace(sent=None) == about(
        subresource="ephemeralcontainers",
        uid=REQUEST["uid"],
        operation="UPDATE",
        groups=("system:authenticated",),
        dry_run=True,
        requested=("", "v1", "Pod"),
    )
    assert (request.object, request.old_object) == (POD, POD)


def test_a_namespace_with_a_generated_name_has_its_name_as_namespace():
    """The API server sends no namespace for it, and one for every other Namespace."""
    about_it = {"kind": {"group": "", "version": "v1", "kind": "Namespace"}, "name": "team-5b9w9"}
    resource = {"group": "", "version": "v1", "resource": "namespaces"}
    object = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"generateName": "team-", "name": "team-5b9w9"},
    }
    request = read(body("namespace", **about_it, resource=resource, object=object))
    assert request.attributes.namespace == "team-5b9w9"


def test_a_cluster_scoped_object_has_no_namespace():
    """Only a Namespace counts as in a namespace, its own: clauses for namespaces must not match other names."""
    role = {"group": "rbac.authorization.k8s.io", "version": "v1"}
    object = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "shop"},
    }
    request = read(
        body(
            "namespace",
            "dryRun",
            name="shop",
            kind=role | {"kind": "ClusterRole"},
            resource=role | {"resource": "clusterroles"},
            object=object,
        )
    )
    assert (request.name, request.attributes.namespace, request.attributes.subresource) == (
        "shop",
        "",
        "",
    )
    assert request.attributes.dry_run is False


def test_a_large_review_has_the_same_verdict_as_a_small_one():
    """Only the time of decoding differs."""
    large = POD | {"metadata": {"name": "it", "annotations": {"a": "x" * MAX_WHOLE}}}
    small, request = read(body()), read(body(object=large))
    assert request.attributes._replace(sent=None) == small.attributes._replace(sent=None)
    assert (small.object, request.object) == (POD, large)


@pytest.mark.parametrize("end", [b"", b"[" * 100_000, b'"x', b"1,}"])
def test_a_large_body_that_is_not_json_is_refused(end):
    """It is found while the envelope is decoded, before any object is."""
    with pytest.raises(NotAReviewError, match=r"^the body is not JSON: "):
        read(b'{"kind": "AdmissionReview", "x": ' + b" " * MAX_WHOLE + end)


def test_the_requested_kind_is_known():
    """With matchPolicy Equivalent, the API server converts the object; the request's kind is reported."""
    sent = {"group": "apps", "version": "v1beta1", "kind": "Pod"}
    assert read(body(requestKind=sent)).attributes.requested == ("apps", "v1beta1", "Pod")


def test_a_scale_is_about_its_workload():
    """The kind is that of the object, the resource that of the workload it belongs to."""
    request = read(
        body(
            kind={"group": "autoscaling", "version": "v1", "kind": "Scale"},
            resource={"group": "apps", "version": "v1", "resource": "deployments"},
            subResource="scale",
            operation="UPDATE",
            object={"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 3}},
        )
    )
    assert (
        request.kind,
        request.attributes.resource_group,
        request.attributes.resource,
        request.attributes.subresource,
    ) == (
        "Scale",
        "apps",
        "deployments",
        "scale",
    )
    assert request.integer("spec.replicas") == 3


NESTED = body(object="%s").replace(b'"%s"', b"%s")


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        pytest.param(b"", "the body is not JSON: ", id="A02 empty"),
        pytest.param(b"{", "the body is not JSON: ", id="A01 truncated"),
        pytest.param(body()[:-1], "the body is not JSON: ", id="A01 truncated at the end"),
        pytest.param(body() + b"{}", "the body is not JSON: ", id="A01 more than one"),
        pytest.param(b"kind: AdmissionReview", "the body is not JSON: ", id="A01 YAML"),
        pytest.param(b"null", "the body: Expected `object`, got `null`", id="A07 null"),
        pytest.param(b"[]", "the body: Expected `object`, got `array`", id="A07 list"),
        pytest.param(b'"x"', "the body: Expected `object`, got `str`", id="A07 string"),
        pytest.param(b"1", "the body: Expected `object`, got `int`", id="A07 number"),
        pytest.param(
            body().replace(b"k8s.io/v1", b"k8s.io/v1beta1"),
            "the body is 'admission.k8s.io/v1beta1 AdmissionReview'; "
            "only admission.k8s.io/v1 AdmissionReview is answered",
            id="A08 another version",
        ),
        pytest.param(
            body().replace(b"AdmissionReview", b"Status"),
            "the body is 'admission.k8s.io/v1 Status'; only admission.k8s.io/v1 AdmissionReview is answered",
            id="A09 another kind",
        ),
        pytest.param(
            body().replace(b"admission.k8s.io", b"x" * 100),
            f"the body is '{'x' * 64} AdmissionReview'; only admission.k8s.io/v1 AdmissionReview is answered",
            id="A09 another group, cut",
        ),
        pytest.param(
            b"{}",
            "the body is 'None None'; only admission.k8s.io/v1 AdmissionReview is answered",
            id="A09 no kind",
        ),
        pytest.param(
            body().replace(b'"request"', b'"Request"'), "request: missing", id="A23 another case"
        ),
        pytest.param(
            json.dumps(
                {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": None}
            ).encode(),
            "request: missing",
            id="A10",
        ),
        pytest.param(
            body("uid"),
            "request.uid: must be a string of 1 to 256 printable characters",
            id="A11 no uid",
        ),
        pytest.param(
            body(uid=""),
            "request.uid: must be a string of 1 to 256 printable characters",
            id="A11 empty uid",
        ),
        pytest.param(body(uid=7), "request.uid: Expected `str`, got `int`", id="A11 uid a number"),
        pytest.param(
            body(uid="x" * 1_000_000),
            "request.uid: must be a string of 1 to 256 printable characters",
            id="A12 uid too long",
        ),
        pytest.param(
            body(uid="a\r\nb"),
            "request.uid: must be a string of 1 to 256 printable characters",
            id="A12 uid with line breaks",
        ),
        pytest.param(NESTED % b"NaN", "the body is not JSON: ", id="A24 NaN"),
        pytest.param(NESTED % b"-Infinity", "the body is not JSON: ", id="A24 infinity"),
        pytest.param(
            NESTED % (b"[" * 15_000 + b"]" * 15_000), "the body is not JSON: ", id="A28 deep"
        ),
        pytest.param(
            b"[" * 3_000_000, "the body: Expected `object`, got `array`", id="A28 only opened"
        ),
        pytest.param(NESTED % b'"\xff"', "the body is not JSON: ", id="A30 not UTF-8"),
        pytest.param(NESTED % b'"\xc0\xaf"', "the body is not JSON: ", id="A30 overlong"),
        pytest.param(body().decode().encode("utf-16"), "the body is not JSON: ", id="A31 UTF-16"),
        pytest.param(body().decode().encode("utf-32"), "the body is not JSON: ", id="A31 UTF-32"),
        pytest.param(b"\xef\xbb\xbf" + body(), "the body is not JSON: ", id="A31 BOM"),
        pytest.param(NESTED % b'"\\ud800"', "the body is not JSON: ", id="A32 lone surrogate"),
    ],
)
def test_a_body_that_is_no_review_cannot_be_answered(sent, told):
    """The error has the reason, and repeats only a short part of the body."""
    with pytest.raises(NotAReviewError) as error:
        read(sent)
    assert str(error.value) == told or (told.endswith(": ") and str(error.value).startswith(told))
    assert len(str(error.value)) < 200


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        pytest.param(
            body("kind"), "request: Object missing required field `kind`", id="A13 no kind"
        ),
        pytest.param(
            body(kind={"version": "v1"}),
            "request.kind: Object missing required field `kind`",
            id="A13 half a kind",
        ),
        pytest.param(
            body("resource"),
            "request: Object missing required field `resource`",
            id="A13 no resource",
        ),
        pytest.param(
            body(resource=[]),
            "request.resource: Expected `object`, got `array`",
            id="A13 resource a list",
        ),
        pytest.param(
            body(userInfo="jane"),
            "request.userInfo: Expected `object | null`, got `str`",
            id="A13 userInfo a string",
        ),
        pytest.param(
            body(userInfo={"groups": "admins"}),
            "request.userInfo.groups: Expected `array | null`, got `str`",
            id="A13 groups a string",
        ),
        pytest.param(
            body(userInfo={"groups": [1]}),
            "request.userInfo.groups[0]: Expected `str`, got `int`",
            id="A13 a group a number",
        ),
        pytest.param(
            body(requestKind={"kind": "Pod"}),
            "request.requestKind: Object missing required field `version`",
            id="half a kind",
        ),
        pytest.param(
            body(namespace=1),
            "request.namespace: Expected `str | null`, got `int`",
            id="A13 namespace a number",
        ),
        pytest.param(
            body(subResource={}),
            "request.subResource: Expected `str | null`, got `object`",
            id="A13 subResource an object",
        ),
        pytest.param(
            body("operation"),
            "request: Object missing required field `operation`",
            id="A14 no operation",
        ),
        pytest.param(
            body(operation="PATCH"),
            "request.operation: must be one of CONNECT, CREATE, DELETE, UPDATE",
            id="A14 another operation",
        ),
        pytest.param(
            body(operation="create"),
            "request.operation: must be one of CONNECT, CREATE, DELETE, UPDATE",
            id="A14 another case",
        ),
        pytest.param(
            body(operation=["CREATE"]),
            "request.operation: Expected `str`, got `array`",
            id="A14 a list",
        ),
        pytest.param(
            body(object=None), "request.object: missing; CREATE needs it", id="A15 null on CREATE"
        ),
        pytest.param(
            body("object", operation="UPDATE"),
            "request.object: missing; UPDATE needs it",
            id="A15 none on UPDATE",
        ),
        pytest.param(body(object=[POD]), "request.object: must be an object", id="A18 a list"),
        pytest.param(body(object="pod"), "request.object: must be an object", id="A18 a string"),
        pytest.param(
            NESTED % b"1e400", "request.object: Number out of range", id="A24 out of range"
        ),
        pytest.param(
            NESTED % (b"1" * 4301),
            "request.object: Integer value out of range",
            id="A25 4,301 digits",
        ),
        pytest.param(
            body(oldObject=1), "request.oldObject: must be an object", id="A18 old one a number"
        ),
        pytest.param(
            body(object=POD | {"kind": "Node"}),
            "request.object.kind: is 'Node', but the request is about 'Pod'",
            id="A19 another kind",
        ),
        pytest.param(
            body(oldObject={}),
            "request.oldObject.kind: is 'None', but the request is about 'Pod'",
            id="A19 old one without a kind",
        ),
        pytest.param(
            body(object=POD | {"kind": "x" * 100}),
            f"request.object.kind: is '{'x' * 64}', but the request is about 'Pod'",
            id="A19 another kind, cut",
        ),
    ],
)
def test_a_malformed_request_is_denied(sent, told):
    """A review with a uid is denied with code 400, with the name of the field."""
    with pytest.raises(MalformedRequestError) as error:
        read(sent)
    assert orjson.loads(deny_malformed(error.value)) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {
            "uid": REQUEST["uid"],
            "allowed": False,
            "status": {"status": "Failure", "code": 400, "reason": "BadRequest", "message": told},
        },
    }


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"operation": "DELETE", "object": None, "oldObject": POD}, id="A16 DELETE"),
        pytest.param({"operation": "DELETE", "object": None}, id="A16 DELETE of a missing object"),
        pytest.param({"operation": "CONNECT", "object": None}, id="A17 CONNECT"),
        pytest.param(
            {"operation": "CONNECT", "object": {"kind": "PodExecOptions"}},
            id="A17 CONNECT with options",
        ),
        pytest.param({"object": POD | {"metadata": None}}, id="A20 metadata null"),
        pytest.param({"object": POD | {"metadata": []}}, id="A20 metadata a list"),
        pytest.param(
            {"name": None, "object": POD | {"metadata": {"generateName": "x-"}}},
            id="A21 generateName",
        ),
        pytest.param(
            {"object": POD | {"a": "\x00\r\n\x1b[31m\u202e"}}, id="A33 control characters"
        ),
        pytest.param({"userInfo": None}, id="userInfo null"),
        pytest.param({"unknown": {"field": 1}}, id="a field of a later version"),
    ],
)
def test_unusual_but_valid_reviews_are_judged(changes):
    """The API server may send these."""
    assert read(body(**changes)).attributes.uid == REQUEST["uid"]


@pytest.mark.parametrize("old", [[POD], 1, "pod"])
def test_an_old_object_of_an_update_is_decoded_when_it_is_read(old):
    """A wrong type is found by the policy that reads it."""
    request = read(body(operation="UPDATE", oldObject=old))
    with pytest.raises(WrongTypeError) as error:
        _ = request.old_object
    assert str(error.value) == "oldObject: must be an object"


def test_integers_are_exact():
    """An integer of any size is never rounded (A25, A26)."""
    numbers = {"a": 2**63, "b": -(2**63), "c": 10**30, "d": 1.0}
    object = read(body(object=POD | numbers)).object
    assert [(type(object[key]), object[key] == value) for key, value in numbers.items()] == [
        (int, True),
        (int, True),
        (int, True),
        (float, True),
    ]


def test_depth_500_is_accepted():
    """An API server accepts this nesting (A27)."""
    deep = json.loads("[" * 500 + "]" * 500)
    assert read(body(object=POD | {"deep": deep})).object["deep"] == deep


def answered(verdict, request=None):
    """Decode the response about a Pod."""
    review = orjson.loads(answer(request or ask(POD), verdict))
    assert (review["apiVersion"], review["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    return review["response"]


DENY, WARN, AUDIT = frozenset({"Deny"}), frozenset({"Warn"}), frozenset({"Audit"})
IMAGE = Violation(
    "spec.image", '"nginx" comes from docker.io', "images must come from a.io", "push it there"
)
REPLICAS = Violation("spec.replicas", 11, "no more than 10 replicas", "set it to 10 or less")
LIMITS = Violation("spec.resources.limits", "cpu missing", "limits are required", "set it")
WRONG = Violation("spec.replicas", '"3" is a string', "it must be an integer", "correct its type")


@pytest.mark.parametrize("verdict", [Verdict(), Verdict((Outcome("images", DENY),))])
def test_an_allowed_response_is_minimal(verdict):
    """Without violations it has only uid and allowed."""
    assert answered(verdict) == {"uid": "u-1", "allowed": True}


def test_a_patch():
    """A patch is base64, and the audit annotations have its policies."""
    policy = Policy(
        "labels", mutate=lambda _request, _params: [Patch(("metadata", "labels", "a"), "ü")]
    )
    request = ask(POD)
    response = answered(Engine([in_force(policy)]).mutate(request), request)
    patch = response.pop("patch")
    assert response == {
        "uid": "u-1",
        "allowed": True,
        "patchType": "JSONPatch",
        "auditAnnotations": {"mutated-by": "labels"},
    }
    assert json.loads(base64.b64decode(patch)) == [
        {"op": "add", "path": "/metadata/labels", "value": {"a": "ü"}}
    ]


def test_three_violations():
    """Each violation is a line of the message, and a cause with its field."""
    verdict = Verdict(
        (Outcome("images", DENY, (IMAGE,)), Outcome("sizes", DENY, (REPLICAS, LIMITS)))
    )
    lines = [
        'spec.image: "nginx" comes from docker.io; images must come from a.io. Push it there.',
        "spec.replicas: 11; no more than 10 replicas. Set it to 10 or less.",
        "spec.resources.limits: cpu missing; limits are required. Set it.",
    ]
    assert answered(verdict) == {
        "uid": "u-1",
        "allowed": False,
        "status": {
            "status": "Failure",
            "code": 403,
            "reason": "Forbidden",
            "message": f"3 violations\n- images: {lines[0]}\n- sizes: {lines[1]}\n- sizes: {lines[2]}",
            "details": {
                "name": "it",
                "group": "",
                "kind": "Pod",
                "causes": [
                    {"reason": "images", "message": lines[0], "field": "spec.image"},
                    {"reason": "sizes", "message": lines[1], "field": "spec.replicas"},
                    {"reason": "sizes", "message": lines[2], "field": "spec.resources.limits"},
                ],
            },
        },
        "auditAnnotations": {"deny": f"images: {lines[0]}\nsizes: {lines[1]}\nsizes: {lines[2]}"},
    }


def test_a_malformed_field_is_reported_once():
    """It is one violation with code 400, for any number of policies that read the field."""
    verdict = Verdict(
        tuple(Outcome(*each, malformed=WRONG) for each in (("a", DENY), ("b", DENY), ("c", WARN)))
    )
    line = 'spec.replicas: "3" is a string; it must be an integer. Correct its type.'
    assert answered(verdict) == {
        "uid": "u-1",
        "allowed": False,
        "status": {
            "status": "Failure",
            "code": 400,
            "reason": "BadRequest",
            "message": f"1 violation\n- a: {line}",
            "details": {
                "name": "it",
                "group": "",
                "kind": "Pod",
                "causes": [{"reason": "a", "message": line, "field": "spec.replicas"}],
            },
        },
        "warnings": [f"c: {line}"],
        "auditAnnotations": {"malformed": f"a: {line}\nb: {line}\nc: {line}"},
    }


def test_a_malformed_field_is_no_denial_of_a_policy_that_does_not_deny():
    """It is a warning, or only in the audit log."""
    line = 'spec.replicas: "3" is a string; it must be an integer. Correct its type.'
    assert answered(
        Verdict((Outcome("a", WARN, malformed=WRONG), Outcome("b", AUDIT, malformed=WRONG)))
    ) == {
        "uid": "u-1",
        "allowed": True,
        "warnings": [f"a: {line}"],
        "auditAnnotations": {"malformed": f"a: {line}\nb: {line}"},
    }


FAILED = "failed with an internal error (RuntimeError). Tell those who run Gatewright."
NOT_LOOKED_UP = "could not be decided, since namespace labels could not be looked up. Try again."


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (RuntimeError("the secret of life"), FAILED),
        (NotLookedUpError("namespace_labels"), NOT_LOOKED_UP),
    ],
)
def test_a_policy_error_with_fail(error, text):
    """The denial has code 500 and the policy's name, not the error's text."""
    assert answered(Verdict((Outcome("names", DENY, error=error),))) == {
        "uid": "u-1",
        "allowed": False,
        "status": {
            "status": "Failure",
            "code": 500,
            "reason": "InternalError",
            "message": f"1 policy failure\n- names: {text}",
            "details": {
                "name": "it",
                "group": "",
                "kind": "Pod",
                "causes": [{"reason": "names", "message": text, "field": ""}],
            },
        },
        "auditAnnotations": {"error": f"names: {text}"},
    }


def test_a_policy_error_with_ignore():
    """The request is allowed with a warning."""
    assert answered(
        Verdict((Outcome("names", DENY, error=RuntimeError("x"), fails_closed=False),))
    ) == {
        "uid": "u-1",
        "allowed": True,
        "warnings": [f"names: {FAILED}"],
        "auditAnnotations": {"error": f"names: {FAILED}"},
    }


@pytest.mark.parametrize(
    ("outcomes", "code", "first", "causes"),
    [
        pytest.param(
            [Outcome("a", DENY, (IMAGE,)), Outcome("b", DENY, error=RuntimeError())],
            403,
            "1 violation, 1 policy failure",
            ["a", "b"],
            id="a violation and a failure",
        ),
        pytest.param(
            [
                Outcome("a", DENY, (IMAGE,)),
                Outcome("b", DENY, malformed=WRONG),
                Outcome("c", DENY, error=RuntimeError()),
            ],
            400,
            "2 violations, 1 policy failure",
            ["a", "b", "c"],
            id="malformed and others",
        ),
        pytest.param(
            [Outcome("a", DENY, error=RuntimeError()), Outcome("b", DENY, error=RuntimeError())],
            500,
            "2 policy failures",
            ["a", "b"],
            id="failures alone",
        ),
        pytest.param(
            [Outcome("a", WARN, (IMAGE,)), Outcome("b", DENY, error=RuntimeError())],
            500,
            "1 policy failure",
            ["b"],
            id="a warning does not deny",
        ),
        pytest.param(
            [Outcome("a", DENY, (IMAGE, IMAGE))],
            403,
            "1 violation",
            ["a"],
            id="a repeated violation is one",
        ),
    ],
)
def test_the_most_severe_code_wins(outcomes, code, first, causes):
    """All reasons for a denial are in the message."""
    status = answered(Verdict(tuple(outcomes)))["status"]
    assert (status["code"], status["message"].split("\n")[0]) == (code, first)
    assert [cause["reason"] for cause in status["details"]["causes"]] == causes


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        (WARN, {"warnings": ["sizes: {}"], "auditAnnotations": {"warn": "sizes: {}"}}),
        (AUDIT, {"auditAnnotations": {"audit": "sizes: {}"}}),
        (
            WARN | AUDIT,
            {
                "warnings": ["sizes: {}"],
                "auditAnnotations": {"audit": "sizes: {}", "warn": "sizes: {}"},
            },
        ),
    ],
)
def test_violations_that_do_not_deny_are_reported(actions, expected):
    """Warn adds a warning, Audit an audit annotation."""
    text = "spec.replicas: 11; no more than 10 replicas. Set it to 10 or less."
    response = answered(Verdict((Outcome("sizes", actions, (REPLICAS,)),)))
    assert response == json.loads(
        json.dumps({"uid": "u-1", "allowed": True} | expected).replace("{}", text)
    )


def test_an_existing_violation_is_allowed_with_a_warning():
    """The warning and an audit annotation report it."""
    text = "p: spec.replicas: 11; no more than 10 replicas. Set it to 10 or less."
    assert answered(Verdict((Outcome("p", DENY, tolerated=(REPLICAS,)),))) == {
        "uid": "u-1",
        "allowed": True,
        "warnings": [f"{text} (Already present before this update; not denied.)"],
        "auditAnnotations": {"tolerated": text},
    }


def test_a_denial_has_its_warnings_and_no_patch():
    """Denied objects are not patched, and warnings are kept."""
    operation = {"op": "add", "path": "/a", "value": 1}
    verdict = Verdict(
        (Outcome("a", DENY, (IMAGE,)), Outcome("b", WARN, (REPLICAS,))), [operation], POD
    )
    response = answered(verdict)
    assert response["warnings"] == [
        "b: spec.replicas: 11; no more than 10 replicas. Set it to 10 or less."
    ]
    assert set(response) == {"uid", "allowed", "status", "warnings", "auditAnnotations"}


def test_a_warning_names_the_exception_that_expired():
    """The message has the reason for the warning."""
    tolerated = replace(IMAGE, expired="PolicyException shop/legacy expired 2026-11-01")
    (warning,) = answered(Verdict((Outcome("a", DENY, tolerated=(tolerated,)),)))["warnings"]
    assert warning.endswith(
        "(Already present before this update; not denied. PolicyException shop/legacy expired 2026-11-01.)"
    )


def many(number, length):
    """Report `number` violations whose warnings have `length` characters each."""
    empty = len(f"p: {Violation('f', '', 'r', 'x').message}")
    return [
        Violation("f", f"{index:03}".ljust(length - empty, "x"), "r", "x")
        for index in range(number)
    ]


def listed(*outcomes):
    """Return the lines of the denial message, and the response."""
    response = answered(Verdict(outcomes))
    return response["status"]["message"].split("\n"), response


def test_a_thousand_violations_are_all_listed():
    """They are all in the message; the first ones are causes."""
    lines, _ = listed(Outcome("p", DENY, tuple(many(1000, 64))))
    assert (lines[0], len(lines)) == ("1000 violations", 1001)


def test_a_response_is_smaller_than_256_kib():
    """The message and the audit annotation state how many violations are left out."""
    actions = frozenset({"Deny", "Audit", "Warn"})
    lines, response = listed(
        *(Outcome(f"p{n}", actions, tuple(many(MAX_VIOLATIONS, 200))) for n in range(3))
    )
    assert len(orjson.dumps(response)) < 256 << 10
    assert lines[-1] == "- and more, which are not listed."
    assert lines[0] == f"more than {len(lines) - 2} violations"
    assert 100 < len(response["status"]["details"]["causes"]) < len(lines)
    assert response["auditAnnotations"]["audit"].endswith("- and more, which are not listed.")


def test_warnings_within_the_limit_are_not_cut():
    """The limit is 4,096 characters in total."""
    warnings = answered(Verdict((Outcome("p", WARN, tuple(many(8, 512))),)))["warnings"]
    assert [len(warning) for warning in warnings] == [512] * 8


def test_warnings_beyond_the_limit_are_cut():
    """The API server would cut each to 256 characters and drop the rest; Gatewright does, and adds their number."""
    warnings = answered(Verdict((Outcome("p", WARN, tuple(many(20, 512))),)))["warnings"]
    assert [len(warning) for warning in warnings[:-1]] == [256] * 15
    assert all(warning.endswith("…") for warning in warnings[:-1])
    assert warnings[-1] == "and 5 more warnings"
    assert sum(map(len, warnings)) <= 4096


def test_control_characters_are_escaped():
    """The API server drops a warning with a line break, and a terminal would execute an escape."""
    evil = Violation("a\nb", "c\r\n\x1b[31md\u202e", "e\x00", "f\u2028")
    text = "a b: c   [31md ; e . F ."
    response = answered(Verdict((Outcome("p", frozenset({"Deny", "Warn"}), (evil,)),)))
    assert response["warnings"] == [f"p: {text}"]
    assert response["status"]["message"] == f"1 violation\n- p: {text}"
    assert response["status"]["details"]["causes"] == [
        {"reason": "p", "message": text, "field": "a b"}
    ]


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ({"generateName": "shop-"}, "shop-"),
        ({}, ""),
        (None, ""),
        ([], ""),
        ({"generateName": 5}, ""),
    ],
)
def test_an_object_without_a_name_has_its_prefix(metadata, name):
    """A denial of an object with generateName names the prefix (A21)."""
    request = Request(about(name=""), POD | {"metadata": metadata})
    assert (
        answered(Verdict((Outcome("p", DENY, (IMAGE,)),)), request)["status"]["details"]["name"]
        == name
    )
