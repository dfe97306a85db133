"""What the answers to the dry runs of `enforcement` mean. Pure."""

from collections.abc import Mapping
from typing import Literal, NamedTuple, Protocol

from controller.registration.configurations import DOMAIN
from kube.errors import BY_WEBHOOK, ApiError, Forbidden, NamespaceTerminating
from kube.resource import JsonObject, Resource
from webhook.engine import BoundPolicy

ENFORCED = "Enforced"
FORBIDDEN = "Forbidden"
NAMESPACE_GONE = "NamespaceGone"
UNANSWERED = frozenset(
    {"InternalError", "ServerTimeout", "ServiceUnavailable", "Timeout", "TooManyRequests"}
)
"""Reasons that say nothing about the request: the same one can be sent again."""
MAX_TEXT = 300  # characters of the API server's text in a message

EnforcementStatus = Literal["True", "False", "Unknown"]


class Enforcement(NamedTuple):
    """Whether a policy is enforced, as in a condition."""

    status: EnforcementStatus
    reason: str
    message: str

    def condition(self) -> JsonObject:
        """Return the condition, without times."""
        return {"type": ENFORCED, **self._asdict()}


class ProbeRequest(Protocol):
    """A request to create an object that a policy denies."""

    @property
    def resource(self) -> Resource:
        """The resource of the object."""

    @property
    def namespace(self) -> str:
        """The namespace; "" for a cluster-scoped object."""

    @property
    def object(self) -> JsonObject:
        """The object."""


NO_REQUEST = Enforcement(
    "Unknown",
    "NoRequest",
    "no request to create an object is known that this policy, and no policy of another "
    "failurePolicy, denies in a namespace of the cluster to the controller's account; add a case "
    "that expects a denial to the policy",
)


ADMITTED = Enforcement("False", "Admitted", "the API server admits what this policy must deny")


def judge_error(policy: BoundPolicy, error: ApiError, request: ProbeRequest) -> Enforcement:
    """Return what an error of the dry run means: only a denial by the policy proves it."""
    text = " ".join(error.message.split())[:MAX_TEXT]
    webhook = _denying_webhook(error.message)
    if webhook.endswith(f".{DOMAIN}"):
        causes = error.details.get("causes") or []
        titles = {cause.get("reason") for cause in causes if isinstance(cause, Mapping)}
        if policy.title in titles:
            return Enforcement("True", "Denied", f"denied in a dry run by {webhook}")
        is_ours = ("-ignore" in webhook) is not policy.fails_closed
        if is_ours and titles:
            return Enforcement("False", "NotDenied", f"{webhook} denied it without this policy")
        return Enforcement("Unknown", "DeniedFirst", f"{webhook} denied it first: {text}")
    if webhook:
        return Enforcement("Unknown", "DeniedFirst", f"{webhook} denied it first: {text}")
    if isinstance(error, NamespaceTerminating) or error.details.get("kind") == "namespaces":
        return Enforcement("Unknown", NAMESPACE_GONE, f"{error.code} answer: {text}")
    if isinstance(error, Forbidden) and "cannot create resource" in error.message:
        where = f" in namespace {request.namespace}" if request.namespace else ""
        right = f"create {request.resource.plural}{where}"
        return Enforcement("Unknown", FORBIDDEN, f"the controller may not {right}: {text}")
    return Enforcement("Unknown", error.reason or "Error", f"{error.code or 'no'} answer: {text}")


def _denying_webhook(message: str) -> str:
    """Return the name of the webhook that denied a request, or ""."""
    if not message.startswith(BY_WEBHOOK):
        return ""
    return message.removeprefix(BY_WEBHOOK).partition('"')[0]


def judge_unread(error: ApiError) -> Enforcement:
    """Return what it means that namespaces cannot be listed."""
    text = " ".join(error.message.split())[:MAX_TEXT]
    return Enforcement("Unknown", error.reason or "Error", f"namespaces cannot be listed: {text}")
