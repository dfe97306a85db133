"""What the answers to the dry runs of `enforcement` mean. Pure."""

import re
from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple, Protocol

from controller.registration.configurations import DOMAIN
from kube.errors import BY_WEBHOOK, ApiError, Forbidden, is_of_ended_namespace
from kube.resource import JsonObject, Resource
from webhook.engine import BoundPolicy
from webhook.messages import MORE

ENFORCED = "Enforced"
FORBIDDEN = "Forbidden"
NAMESPACE_GONE = "NamespaceGone"
UNANSWERED = frozenset(
    {"InternalError", "ServerTimeout", "ServiceUnavailable", "Timeout", "TooManyRequests"}
)
"""Reasons that say nothing about the request: the same one can be sent again."""
LISTED = re.compile(r"^- (\S+): ", re.MULTILINE)
"""A line of a denial's message, and in it the title of the policy that is violated."""
MORE_POLICIES = "more policies deny it than its message lists"
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
    """A request to create an object that policies deny."""

    @property
    def titles(self) -> Collection[str]:
        """The titles of the policies that deny it."""

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


class DryRunAnswer(NamedTuple):
    """The answer to a dry run."""

    error: ApiError | None
    """None: it was admitted."""
    webhook: str
    """The name of the webhook that denied it, or ""."""
    titles: frozenset[str]
    """The policies for which one of Gatewright's webhooks denied it."""

    @property
    def is_own_denial(self) -> bool:
        """Whether one of Gatewright's webhooks denied it: the API server calls it."""
        return self.webhook.endswith(f".{DOMAIN}")

    @property
    def status(self) -> EnforcementStatus:
        """What it means for the policies that deny the request in the leader."""
        if self.error is None:
            return "False"
        return "True" if self.is_own_denial else "Unknown"


def read_answer(error: ApiError | None) -> DryRunAnswer:
    """Read the error of a dry run; None: it was admitted."""
    if error is None:
        return DryRunAnswer(None, "", frozenset())
    webhook = _denying_webhook(error.message)
    answer = DryRunAnswer(error, webhook, frozenset())
    return answer._replace(titles=_denying_policies(error)) if answer.is_own_denial else answer


def judge(policy: BoundPolicy, answer: DryRunAnswer, request: ProbeRequest) -> Enforcement:
    """Return what an answer means for a policy: only a denial by the policy proves it."""
    error, webhook = answer.error, answer.webhook
    if error is None:
        return ADMITTED
    text = " ".join(error.message.split())[:MAX_TEXT]
    if answer.is_own_denial:
        if policy.title in answer.titles:
            return Enforcement("True", "Denied", f"denied in a dry run by {webhook}")
        if MORE in error.whole_message:
            return Enforcement("Unknown", "NotListed", f"{webhook} denied it; {MORE_POLICIES}")
        is_ours = ("-ignore" in webhook) is not policy.fails_closed
        if is_ours and answer.titles:
            return Enforcement("False", "NotDenied", f"{webhook} denied it without this policy")
        return Enforcement("Unknown", "DeniedFirst", f"{webhook} denied it first: {text}")
    if webhook:
        return Enforcement("Unknown", "DeniedFirst", f"{webhook} denied it first: {text}")
    if is_of_ended_namespace(error):
        return Enforcement("Unknown", NAMESPACE_GONE, f"{error.code} answer: {text}")
    if isinstance(error, Forbidden) and "cannot create resource" in error.message:
        where = f" in namespace {request.namespace}" if request.namespace else ""
        right = f"create {request.resource.plural}{where}"
        return Enforcement("Unknown", FORBIDDEN, f"the controller may not {right}: {text}")
    return Enforcement("Unknown", error.reason or "Error", f"{error.code or 'no'} answer: {text}")


def _denying_policies(error: ApiError) -> frozenset[str]:
    """Return the titles of the policies in a denial: its causes have not always room for all."""
    causes = error.details.get("causes") or []
    listed = (str(cause.get("reason")) for cause in causes if isinstance(cause, Mapping))
    return frozenset(listed).union(LISTED.findall(error.whole_message))


def _denying_webhook(message: str) -> str:
    """Return the name of the webhook that denied a request, or ""."""
    if not message.startswith(BY_WEBHOOK):
        return ""
    return message.removeprefix(BY_WEBHOOK).partition('"')[0]


def judge_unread(error: ApiError) -> Enforcement:
    """Return what it means that namespaces cannot be listed."""
    text = " ".join(error.message.split())[:MAX_TEXT]
    return Enforcement("Unknown", error.reason or "Error", f"namespaces cannot be listed: {text}")
