"""Containers run with approved user ids (default: any but 0).

Why: user 0 is root, and a process can read files of volumes, other pods and the node that belong to
the same user id.
Judged: pods, but not those in a user namespace (`hostUsers: false`), whose root is unprivileged on
the node.

Allowed: `runAsUser: 1000`; none, where `required` is false: the image decides.
Denied:  `runAsUser: 0`; an id outside of `allowed`.
Fix: set an allowed id, or remove the field and let the image decide.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted,
https://kep.k8s.io/127
"""

from functools import cached_property

from webhook.engine import Policy, Request, Violations
from webhook.policies._ranges import format_ranges
from webhook.policies._security_contexts import NOT_ROOT, Ids, in_user_namespace, unless

PATH = "securityContext.runAsUser"


class RunAsUser(Ids):
    """Which users containers may run as."""

    @cached_property
    def rule(self) -> str:
        """The rule, as messages state it."""
        if self.allowed == [NOT_ROOT]:
            return "the user must not be 0, which is root"
        return f"the user must be within {format_ranges(self.allowed)}"


def validate(request: Request, params: RunAsUser) -> Violations:
    """Return a violation for each id that is not allowed, and each that is missing."""
    return params.judge(request, PATH, params.rule)


POLICY = Policy(
    "run-as-user",
    RunAsUser,
    validate=unless(in_user_namespace, validate),
    category="pod-security",
    severity="high",
)
