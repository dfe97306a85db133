"""AdmissionReview (admission.k8s.io/v1) to Request, and Verdict to AdmissionReview, as pure functions."""

import base64
from typing import Any

import orjson

from webhook.engine import Attributes, Request, Verdict
from webhook.messages import REASONS, audit_annotations, status, warnings, within_budget

API_VERSION, KIND = "admission.k8s.io/v1", "AdmissionReview"
OPERATIONS = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})
LONGEST_UID = 256  # characters; the API server's are 36

KIND_KEYS = ("group", "version", "kind")


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
    """Decode a review of any kind: its uid, and what is asked. NotAReviewError where nobody could be answered."""
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
    operation = _part(uid, request, "operation", str)
    if operation not in OPERATIONS:
        raise MalformedRequestError(uid, "request.operation", f"must be one of {', '.join(sorted(OPERATIONS))}")
    kind = _triple(uid, request, "kind", KIND_KEYS)
    resource = _triple(uid, request, "resource", ("group", "version", "resource"))
    user = _part(uid, request, "userInfo", dict)
    object, old_object = _part(uid, request, "object", dict), _part(uid, request, "oldObject", dict)
    if object is None and operation in ("CREATE", "UPDATE"):
        raise MalformedRequestError(uid, "request.object", f"missing; {operation} needs it")
    attributes = Attributes(
        uid=uid,
        operation=operation,
        group=kind[0],
        version=kind[1],
        kind=kind[2],
        resource_group=resource[0],
        resource=resource[2],
        subresource=_part(uid, request, "subResource", str) or "",
        name=_part(uid, request, "name", str) or "",
        namespace=_part(uid, request, "namespace", str) or "",
        username=str((user or {}).get("username", "")),
        groups=_groups(uid, user or {}),
        dry_run=request.get("dryRun") is True,
        requested=_requested(uid, request, kind),
    )
    for which, whole in (("object", object), ("oldObject", old_object)):
        if whole is not None and operation != "CONNECT" and whole.get("kind") != attributes.kind:
            found = str(whole.get("kind"))[:64]
            raise MalformedRequestError(
                uid, f"request.{which}.kind", f"is {found!r}, but the request is about {attributes.kind!r}"
            )
    return Request(attributes, object, old_object)


def _part(uid: str, request: dict[str, Any], name: str, wanted: type) -> Any:
    value = request.get(name)
    if value is not None and type(value) is not wanted:
        raise MalformedRequestError(uid, f"request.{name}", f"must be {'an object' if wanted is dict else 'a string'}")
    return value


def _triple(uid: str, request: dict[str, Any], name: str, keys: tuple[str, str, str]) -> tuple[str, str, str]:
    value = _part(uid, request, name, dict) or {}
    group, version, last = (value.get(key, "") for key in keys)
    if not (isinstance(group, str) and isinstance(version, str) and isinstance(last, str) and version and last):
        raise MalformedRequestError(uid, f"request.{name}", f"must name {', '.join(keys)}")
    return group, version, last


def _groups(uid: str, user: dict[str, Any]) -> tuple[str, ...]:
    groups = user.get("groups") or []
    if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
        raise MalformedRequestError(uid, "request.userInfo.groups", "must be a list of strings")
    return tuple(groups)


def _requested(uid: str, request: dict[str, Any], kind: tuple[str, str, str]) -> tuple[str, str, str]:
    """Return the kind that was sent, where matchPolicy Equivalent made another one of it."""
    return kind if request.get("requestKind") is None else _triple(uid, request, "requestKind", KIND_KEYS)


def answer(request: Request, verdict: Verdict) -> bytes:
    """Encode what was decided: allowed or denied with everything that was found, warnings, patch, audit annotations."""
    response: dict[str, Any] = {"uid": request.attributes.uid, "allowed": verdict.allowed}
    if not verdict.allowed:
        response["status"] = status(request, verdict)
    elif verdict.operations:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(orjson.dumps(verdict.operations)).decode()
    if told := list(within_budget(list(warnings(verdict)))):
        response["warnings"] = told
    if annotations := audit_annotations(verdict):
        response["auditAnnotations"] = annotations
    return _review(response)


def deny_malformed(error: MalformedRequestError) -> bytes:
    """Encode the denial of a request that cannot be judged."""
    denial = {"status": "Failure", "code": 400, "reason": REASONS[400], "message": str(error)}
    return _review({"uid": error.uid, "allowed": False, "status": denial})


def _review(response: dict[str, Any]) -> bytes:
    return orjson.dumps({"apiVersion": API_VERSION, "kind": KIND, "response": response})
