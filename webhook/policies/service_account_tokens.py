"""No pod gets a token of the API server that it does not ask for by name of its service account.

Why: a token is mounted into every pod by default. Few programs use it, and who breaks into one can.

Allowed: `automountServiceAccountToken: false`; a pod whose service account is among `allowed`.
Denied:  `automountServiceAccountToken: true`, or not set, for any other service account.
Fix: set it to false; a program that calls the API server gets a service account of its own.
See: https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/
"""

from collections.abc import Iterator
from functools import cached_property

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violation
from webhook.engine.globs import Globs

PATH = "automountServiceAccountToken"


class ServiceAccountTokens(Params):
    """Whose tokens may be mounted."""

    allowed: list[str] = Field([], description="service accounts whose token may be mounted, as patterns (`*`, `?`)")

    @cached_property
    def globs(self) -> Globs:
        """The patterns, compiled."""
        return Globs(self.allowed)


def validate(request: Request, params: ServiceAccountTokens) -> Iterator[Violation]:
    """Yield a violation where a token is mounted that may not be."""
    pod = request.pod()
    if pod is None or pod.boolean(PATH) is False:
        return
    account = pod.string("serviceAccountName") or "default"
    if not params.globs.match(account):
        found = f"{'unset' if pod.boolean(PATH) is None else 'true'}, with the service account {account}"
        names = ", ".join(params.allowed)
        rule = f"only tokens of {names} may be mounted" if names else "no token may be mounted"
        yield Violation(pod.path(PATH), found, rule, "set it to false")


POLICY = Policy("service-account-tokens", ServiceAccountTokens, validate=validate, category="pod-security")
