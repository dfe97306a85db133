"""Containers run with approved user ids (default: any but 0).

Why: user 0 is root, and a process can read files of volumes, other pods and the node that belong to the same user id.

Judged: pods, by default without those in a user namespace (`hostUsers: false`), whose root is unprivileged on the node.

Allowed: `runAsUser: 1000`; none, where `required` is false: the image decides.
Denied:  `runAsUser: 0`; an id outside of `allowed`.
Fix: set an allowed id, or remove the field and let the image decide.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted, https://kep.k8s.io/127
"""

from functools import cached_property

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violations
from webhook.policies._ranges import Range, any_holds, listed
from webhook.policies._security_contexts import contexts, in_user_namespace, inherited, is_windows, missing

PATH = "securityContext.runAsUser"
NOT_ROOT = Range(minimum=1, maximum=2**31 - 1)


class RunAsUser(Params):
    """Which users containers may run as."""

    allowed: list[Range] = Field([NOT_ROOT], min_length=1, description="ranges of user ids that may be set")
    required: bool = Field(False, description="whether each container must have one, of its own or the pod's")
    exempt_user_namespaces: bool = Field(True, description="skip pods with `hostUsers: false`")

    @cached_property
    def rule(self) -> str:
        """What a message says must be."""
        if self.allowed == [NOT_ROOT]:
            return "the user must not be 0, which is root"
        return f"the user must be within {listed(self.allowed)}"


def validate(request: Request, params: RunAsUser) -> Violations:
    """Yield a violation for each id that may not be set, and for each container without one that needs one."""
    pod = request.pod()
    if params.exempt_user_namespaces and in_user_namespace(pod):
        return
    for context in contexts(request):
        found = context.integer(PATH)
        if found is not None and not any_holds(params.allowed, found):
            excess = inherited(request, context, PATH, found)
            yield context.violation(PATH, found, params.rule, "set an id that is allowed", excess=excess)
    if params.required and not is_windows(pod):
        yield from missing(request, PATH, params.rule)


POLICY = Policy("run-as-user", RunAsUser, validate=validate, category="pod-security", severity="high")
