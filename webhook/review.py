"""AdmissionReview (admission.k8s.io/v1) to Request, and Verdict to AdmissionReview, as pure functions."""

import base64
from typing import Any

import orjson

from webhook.engine import Attributes, Request, Verdict
from webhook.messages import REASONS, audit_annotations, status, warnings

API_VERSION, KIND = "admission.k8s.io/v1", "AdmissionReview"
OPERATIONS = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})
LONGEST_UID = 256  # characters; the API server's are 36

PARTS = (
    *((each, str) for each in ("operation", "subResource", "name", "namespace")),
    *((each, dict) for each in ("kind", "resource", "requestKind", "userInfo", "object", "oldObject")),
)
PLAIN_ALLOW = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%s,"allowed":true}}'


class NotAReviewError(ValueError):
    """The body is no AdmissionReview that could be answered: the text says why (HTTP 400)."""


class MalformedRequestError(ValueError):
    """A review that can be answered, about something that cannot be judged: a denial with code 400."""

    def __init__(self, uid: str, path: str, text: str) -> None:
        """Remember whom to answer, and what is wrong where."""
        super().__init__(f"{path}: {text}")
        self.uid = uid


def read(body: bytes) -> Request:
    """Decode an AdmissionReview once. NotAReviewError or MalformedRequestError where it is not one, or not whole."""
    return _request(*envelope(body, API_VERSION, KIND))


def envelope(body: bytes, api_version: str, kind: str) -> tuple[str, dict[str, Any]]:
    """Decode a review of any kind: its uid, and what is asked. NotAReviewError if it has no uid to answer."""
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise NotAReviewError(f"the body is not JSON: {error}") from None
    if not isinstance(review, dict):
        raise NotAReviewError("the body is not a JSON object")
    if (found := (review.get("apiVersion"), review.get("kind"))) != (api_version, kind):
        shown = " ".join(str(part)[:64] for part in found)
        raise NotAReviewError(f"the body is {shown!r}; only {api_version} {kind} is answered")
    request = review.get("request")
    if not isinstance(request, dict):
        raise NotAReviewError("request: missing, or not an object")
    uid = request.get("uid")
    if not isinstance(uid, str) or not 0 < len(uid) <= LONGEST_UID or not uid.isprintable():
        raise NotAReviewError(f"request.uid: must be a string of 1 to {LONGEST_UID} printable characters")
    return uid, request


def _request(uid: str, request: dict[str, Any]) -> Request:
    for part, wanted in PARTS:
        value = request.get(part)
        if value is not None and type(value) is not wanted:
            text = "must be an object" if wanted is dict else "must be a string"
            raise MalformedRequestError(uid, f"request.{part}", text)
    operation = request.get("operation")
    if operation not in OPERATIONS:
        raise MalformedRequestError(uid, "request.operation", f"must be one of {', '.join(sorted(OPERATIONS))}")
    object, old_object = request.get("object"), request.get("oldObject")
    if object is None and operation in ("CREATE", "UPDATE"):
        raise MalformedRequestError(uid, "request.object", f"missing; {operation} needs it")
    kind = _triple(uid, request, "kind", "kind")
    resource = _triple(uid, request, "resource", "resource")
    user = request.get("userInfo") or {}
    attributes = Attributes(
        uid,
        operation,
        *kind,
        resource[0],
        resource[2],
        request.get("subResource") or "",
        request.get("name") or "",
        request.get("namespace") or "",
        str(user.get("username", "")),
        _groups(uid, user),
        request.get("dryRun") is True,
        kind if request.get("requestKind") is None else _triple(uid, request, "requestKind", "kind"),
    )
    for which, whole in (("object", object), ("oldObject", old_object)):
        if whole is not None and operation != "CONNECT" and whole.get("kind") != attributes.kind:
            found = str(whole.get("kind"))[:64]
            raise MalformedRequestError(
                uid, f"request.{which}.kind", f"is {found!r}, but the request is about {attributes.kind!r}"
            )
    return Request(attributes, object, old_object)


def _triple(uid: str, request: dict[str, Any], name: str, last: str) -> tuple[str, str, str]:
    """Return group, version and kind, or resource; all but the group must be there."""
    value = request.get(name) or {}
    group, version, named = value.get("group", ""), value.get("version", ""), value.get(last, "")
    if type(group) is type(version) is type(named) is str and version and named:
        return group, version, named
    raise MalformedRequestError(uid, f"request.{name}", f"must name group, version, {last}")


def _groups(uid: str, user: dict[str, Any]) -> tuple[str, ...]:
    groups = user.get("groups") or []
    if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
        raise MalformedRequestError(uid, "request.userInfo.groups", "must be a list of strings")
    return tuple(groups)


def answer(request: Request, verdict: Verdict) -> bytes:
    """Encode what was decided: allowed or denied with everything that was found, warnings, patch, audit annotations."""
    if verdict.is_plain:
        return PLAIN_ALLOW % orjson.dumps(request.attributes.uid)
    response: dict[str, Any] = {"uid": request.attributes.uid, "allowed": verdict.allowed}
    if not verdict.allowed:
        response["status"] = status(request, verdict)
    elif verdict.operations:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(orjson.dumps(verdict.operations)).decode()
    if lines := warnings(verdict):
        response["warnings"] = lines
    if annotations := audit_annotations(verdict):
        response["auditAnnotations"] = annotations
    return _review(response)


def deny_malformed(error: MalformedRequestError) -> bytes:
    """Encode the denial of a request that cannot be judged."""
    denial = {"status": "Failure", "code": 400, "reason": REASONS[400], "message": str(error)}
    return _review({"uid": error.uid, "allowed": False, "status": denial})


def _review(response: dict[str, Any]) -> bytes:
    return orjson.dumps({"apiVersion": API_VERSION, "kind": KIND, "response": response})
