"""Sends AdmissionReviews to an engine, as the API server sends them to the webhook."""

from dataclasses import dataclass, replace
from typing import Any

import jsonpatch
import orjson

from kube.resource import group_kind, group_version_kind
from webhook.engine import LACKED, Engine, Outcome, Verdict, kinds, lacked_look_ups
from webhook.engine.image_look_ups import IMAGE_LOOK_UPS
from webhook.engine.kinds import KINDS, NAMESPACES
from webhook.review import answer, read


def reviewed_namespace(object: dict[str, Any], namespace: str) -> str:
    """Return the namespace of a review: a Namespace's own name, "" for cluster-scoped objects."""
    kind_record = KINDS.get(group_kind(object))
    if kind_record is None or kind_record.namespaced:
        return namespace
    is_namespace = (kind_record.group, kind_record.plural) == NAMESPACES
    return str(object["metadata"].get("name") or "") if is_namespace else ""


SERVER_UID = "00000000-0000-0000-0000-000000000000"
SCALE = {"apiVersion": "autoscaling/v1", "kind": "Scale"}


@dataclass(frozen=True, slots=True)
class Admission:
    """A request to the API server: an operation on an object, or on a subresource."""

    object: dict[str, Any] | None
    old_object: dict[str, Any] | None = None
    operation: str = "CREATE"
    namespace: str = ""
    subresource: str = ""
    # Group and kind, if they differ from the object's (Scale, exec).
    parent_kind: tuple[str, str] | None = None
    parent_name: str = ""  # for objects without a name (exec)
    username: str = "kubernetes-admin"
    groups: tuple[str, ...] = ("system:authenticated",)
    # Group, version and kind of the request, if they differ from the object's.
    sent: tuple[str, str, str] | None = None
    # The object's plural, if a policy or a CustomResourceDefinition names it; default: the regular
    # one.
    resource: str = ""

    @property
    def about(self) -> dict[str, Any]:
        """The object of the request; for DELETE the old one."""
        return self.object if self.object is not None else self.old_object or {}


def review(admission: Admission) -> bytes:
    """Return the encoded AdmissionReview of `admission`."""
    about = admission.about
    group, version, kind = group_version_kind(about)
    parent_group, parent_kind = admission.parent_kind or (group, kind)
    metadata = about.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    request = {
        "uid": SERVER_UID,
        "kind": _name_kind(group, version, kind),
        "requestKind": _name_kind(*(admission.sent or (group, version, kind))),
        "resource": {
            "group": parent_group,
            "version": version if admission.parent_kind is None else "v1",
            "resource": admission.resource or kinds.resource_of(parent_group, parent_kind),
        },
        "subResource": admission.subresource,
        "operation": admission.operation,
        "namespace": admission.namespace,
        "name": metadata.get("name", admission.parent_name),
        "userInfo": {"username": admission.username, "groups": list(admission.groups)},
        "object": admission.object,
        "oldObject": admission.old_object,
    }
    return orjson.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    )


def _name_kind(group: str, version: str, kind: str) -> dict[str, str]:
    return {"group": group, "version": version, "kind": kind}


@dataclass(frozen=True, slots=True)
class ReviewAnswer:
    """The answer to one request: the last response, the patched object, all outcomes."""

    response: dict[str, Any]
    object: dict[str, Any] | None
    outcomes: tuple[Outcome, ...]
    patched_twice: bool  # whether a second mutation changed the object again
    hook: str = "validate"  # the one of the response

    @property
    def allowed(self) -> bool:
        """Whether the request is allowed."""
        return bool(self.response["allowed"])


def ask(engine: Engine, admission: Admission, looked_up: dict[str, Any]) -> ReviewAnswer:
    """Judge a request as the API server does: mutate, mutate again, then validate.

    Each call gets an encoded review. Where mutations lack data of a registry, the validation still
    reports all other violations.

    Raises MalformedRequestError if the object could not be part of a review.
    """
    mutated, first, outcomes = _mutate(engine, admission, looked_up)
    lacks = lacked_look_ups(outcomes)
    if not first["allowed"] and not lacks & IMAGE_LOOK_UPS:
        return ReviewAnswer(first, admission.object, outcomes, patched_twice=False, hook="mutate")
    again, second, _ = _mutate(engine, mutated, looked_up)
    verdict, response = _round(engine.validate, again, {**looked_up, LACKED: lacks})
    outcomes += verdict.outcomes
    if not first["allowed"]:
        return ReviewAnswer(first, mutated.object, outcomes, patched_twice=False, hook="mutate")
    warnings = [*first.get("warnings", ()), *response.get("warnings", ())]
    response = response | ({"warnings": warnings} if warnings else {})
    return ReviewAnswer(response, mutated.object, outcomes, patched_twice="patch" in second)


def _mutate(
    engine: Engine, admission: Admission, looked_up: dict[str, Any]
) -> tuple[Admission, dict[str, Any], tuple[Outcome, ...]]:
    verdict, response = _round(engine.mutate, admission, looked_up)
    if verdict.operations:
        object = jsonpatch.apply_patch(admission.object, verdict.operations)
        admission = replace(admission, object=object)
    return admission, response, verdict.outcomes


def _round(
    judge: Any, admission: Admission, looked_up: dict[str, Any]
) -> tuple[Verdict, dict[str, Any]]:
    request = read(review(admission)).with_looked_up(looked_up)
    verdict = judge(request)
    return verdict, orjson.loads(answer(request, verdict))["response"]
