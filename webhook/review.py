"""Converts an AdmissionReview to a Request, and a Verdict to an AdmissionReview. Pure."""

import base64
from collections.abc import Mapping
from typing import Annotated, Any, Generic, TypeVar

import msgspec
import orjson

from webhook.engine import Attributes, Request, Verdict
from webhook.engine.kinds import NAMESPACES
from webhook.engine.request import NOTHING
from webhook.messages import REASONS, audit_annotations, status, warnings

API_VERSION, KIND = "admission.k8s.io/v1", "AdmissionReview"
OPERATIONS = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})
LONGEST_UID = 256  # characters; the API server's are 36
PLAIN_ALLOW = (
    b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",'
    b'"response":{"uid":%s,"allowed":true}}'
)
NULL = b"null"
# Marks an object that is being deleted; the API server escapes no letters.
DELETION_TIMESTAMP = b'"deletionTimestamp"'
# Bytes of a body whose object is decoded immediately, since a policy probably reads it.
MAX_WHOLE = 32 * 1024

LONGEST_TEXT = 4096  # characters of a name, of a user or of a group
LimitedText = Annotated[str, msgspec.Meta(max_length=LONGEST_TEXT)]
NonEmptyText = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_TEXT)]


class NotAReviewError(ValueError):
    """The body is not a valid AdmissionReview; the message has the reason (HTTP 400)."""


class MalformedRequestError(ValueError):
    """A review that cannot be judged: the answer is a denial with code 400."""

    def __init__(self, uid: str, text: str) -> None:
        """Take the uid of the review, and the message."""
        super().__init__(text)
        self.uid = uid


class Identified(msgspec.Struct):
    """The field of every review: the answer repeats the `uid`."""

    uid: str = ""


IdentifiedT = TypeVar("IdentifiedT", bound=Identified)


class Review(msgspec.Struct, Generic[IdentifiedT], rename="camel"):
    """A review of any kind, with its request."""

    api_version: str | None = None
    kind: str | None = None
    request: IdentifiedT | None = None


class _GroupKind(msgspec.Struct, gc=False):
    version: NonEmptyText
    kind: NonEmptyText
    group: LimitedText = ""


class _GroupResource(msgspec.Struct, gc=False):
    version: NonEmptyText
    resource: NonEmptyText
    group: LimitedText = ""


class _User(msgspec.Struct):
    username: LimitedText = ""
    groups: tuple[LimitedText, ...] | None = None
    uid: str = ""
    extra: Any = None


class _AdmissionRequest(Identified, rename="camel", kw_only=True):
    kind: _GroupKind
    resource: _GroupResource
    operation: str
    sub_resource: LimitedText | None = None
    request_kind: _GroupKind | None = None
    name: LimitedText | None = None
    namespace: LimitedText | None = None
    user_info: _User | None = None
    dry_run: bool | None = None
    request_resource: Any = None
    options: Any = msgspec.UNSET
    object: Any = None
    old_object: msgspec.Raw = msgspec.Raw(NULL)


class _LargeRequest(_AdmissionRequest, rename="camel", kw_only=True):
    """A request whose object is decoded only if a policy reads it: skipping costs a tenth."""

    object: msgspec.Raw = msgspec.Raw(NULL)


class _AdmissionReview(Review[_AdmissionRequest]):
    """An AdmissionReview. A class, since a generic alias would be hashed at each use."""


class _LargeReview(Review[_LargeRequest]):
    """A large AdmissionReview."""


IDENTIFIED = Review[Identified]


def read(body: bytes) -> Request:
    """Decode an AdmissionReview. Raises NotAReviewError or MalformedRequestError."""
    return request(attributes(body))


def request(attributes: Attributes, looked_up: Mapping[str, Any] = NOTHING) -> Request:
    """Return the request of a review with its objects and look-ups. Raises as `read`."""
    object, operation = attributes.sent.object, attributes.operation
    if type(object) is msgspec.Raw:
        object = decode_part(object)
    object = _check(attributes, object, "object")
    if object is None and operation in ("CREATE", "UPDATE"):
        text = f"request.object: missing; {operation} needs it"
        raise MalformedRequestError(attributes.uid, text)
    old: Any = bytes(attributes.sent.old_object)
    if old == NULL:
        old = None
    elif operation != "UPDATE" or DELETION_TIMESTAMP in old:
        old = _check(attributes, decode_part(old), "oldObject")
    return Request(attributes, object, old, looked_up)


def sent_object(attributes: Attributes, max_bytes: int) -> dict[str, Any]:
    """Return the object that was sent; empty if there is none, or if it is larger or malformed."""
    object = None if attributes.sent is None else attributes.sent.object
    if type(object) is msgspec.Raw:
        try:
            object = decode_part(object) if len(bytes(object)) <= max_bytes else None
        except NotAReviewError:
            object = None  # the request is denied for it
    return object if isinstance(object, dict) else {}


def _check(attributes: Attributes, object: Any, field: str) -> dict[str, Any] | None:
    if object is None:
        return None
    if type(object) is not dict:
        raise MalformedRequestError(attributes.uid, f"request.{field}: must be an object")
    sent_kind, kind = object.get("kind"), attributes.kind
    if sent_kind != kind and attributes.operation != "CONNECT":
        message = f"is {str(sent_kind)[:64]!r}, but the request is about {kind!r}"
        raise MalformedRequestError(attributes.uid, f"request.{field}.kind: {message}")
    return object


def attributes(body: bytes) -> Attributes:
    """Decode a review without its objects, but with the object if the body is small.

    Raises as `read`.
    """
    sort: type[Review[Any]] = _AdmissionReview if len(body) <= MAX_WHOLE else _LargeReview
    sent: _AdmissionRequest = decode_review(body, sort, API_VERSION, KIND)
    if sent.operation not in OPERATIONS:
        operations = ", ".join(sorted(OPERATIONS))
        raise MalformedRequestError(sent.uid, f"request.operation: must be one of {operations}")
    kind, resource, user = sent.kind, sent.resource, sent.user_info
    judged = kind.group, kind.version, kind.kind
    namespace, requested = sent.namespace, sent.request_kind
    if not namespace and (resource.group, resource.resource) == NAMESPACES:
        namespace = sent.name  # missing if the API server generates the name
    return Attributes(
        sent.uid,
        sent.operation,
        *judged,
        resource.group,
        resource.resource,
        sent.sub_resource or "",
        sent.name or "",
        namespace or "",
        "" if user is None else user.username,
        () if user is None else user.groups or (),
        sent.dry_run is True,
        judged if requested is None else (requested.group, requested.version, requested.kind),
        sent,
    )


def decode_review(
    body: bytes, review_type: type[Review[IdentifiedT]], api_version: str, kind: str
) -> IdentifiedT:
    """Return the request of a review. Raises NotAReviewError if it has no uid, else as `read`."""
    try:
        review = msgspec.json.decode(body, type=review_type)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `$.")
        message = f"{path.rstrip('`') or 'the body'}: {text}"
        if review_type is IDENTIFIED:
            raise NotAReviewError(message) from None
        uid = decode_review(body, IDENTIFIED, api_version, kind).uid
        raise MalformedRequestError(uid, message) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotAReviewError(f"the body is not JSON: {error}") from None
    if (sent_type := (review.api_version, review.kind)) != (api_version, kind):
        shown = " ".join(str(part)[:64] for part in sent_type)
        raise NotAReviewError(f"the body is {shown!r}; only {api_version} {kind} is answered")
    if review.request is None:
        raise NotAReviewError("request: missing")
    if not 0 < len(review.request.uid) <= LONGEST_UID or not review.request.uid.isprintable():
        text = f"must be a string of 1 to {LONGEST_UID} printable characters"
        raise NotAReviewError(f"request.uid: {text}")
    return review.request


def decode_part(value: bytes | msgspec.Raw) -> Any:
    """Decode a part of a body. Raises NotAReviewError if it is not JSON."""
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotAReviewError(f"the body is not JSON: {error}") from None


def allow(attributes: Attributes) -> bytes:
    """Encode a plain allow."""
    return PLAIN_ALLOW % orjson.dumps(attributes.uid)


def answer(request: Request, verdict: Verdict) -> bytes:
    """Encode the answer: allowed or denied, violations, warnings, patch, audit annotations."""
    if verdict.is_plain:
        return allow(request.attributes)
    response: dict[str, Any] = {"uid": request.attributes.uid, "allowed": verdict.allowed}
    if not verdict.allowed:
        response["status"] = status(request, verdict)
    elif verdict.operations:
        response["patchType"] = "JSONPatch"
        patch = base64.b64encode(orjson.dumps(verdict.operations))
        # Base64 needs no escaping, for which orjson would allocate much memory.
        response["patch"] = orjson.Fragment(b'"%b"' % patch)
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
