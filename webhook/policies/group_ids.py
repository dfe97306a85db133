"""Containers run with approved group ids (default: any but 0).

Why: group 0 is root's group, and a process can read files of volumes, other pods and the node that belong to the same
group id.

Judged: `runAsGroup` of the pod and of each container, `fsGroup` and each of `supplementalGroups` of the pod.

Allowed: `runAsGroup: 1000`; none, where the group is not `required`.
Denied:  `runAsGroup: 0`; an id outside of what is allowed.
Fix: set an id that is allowed, or remove the field.
See: https://kubernetes.io/docs/tasks/configure-pod-container/security-context/
"""

from functools import cached_property

from pydantic import Field

from webhook.engine import Fields, Params, Policy, Request, Violations
from webhook.policies._ranges import Range, any_holds, listed
from webhook.policies._security_contexts import contexts, is_windows, missing

RUN_AS_GROUP = "securityContext.runAsGroup"
FS_GROUP = "securityContext.fsGroup"
SUPPLEMENTAL = "securityContext.supplementalGroups"


class GroupIds(Params):
    """Which ids one of the groups may have."""

    allowed: list[Range] = Field(
        [Range(minimum=1, maximum=2**31 - 1)], min_length=1, description="ranges of group ids that may be set"
    )
    required: bool = Field(False, description="whether it must be set")

    @cached_property
    def rule(self) -> str:
        """What a message says must be."""
        return f"group ids must be within {listed(self.allowed)}"

    def judge(self, holder: Fields, path: str, *found: int | None) -> Violations:
        """Yield a violation for each of the ids found that may not be set."""
        for each in found:
            if each is not None and not any_holds(self.allowed, each):
                yield holder.violation(path, each, self.rule, "set an id that is allowed")


class Groups(Params):
    """Which groups containers may run in; null leaves a group unjudged."""

    run_as_group: GroupIds | None = Field(GroupIds(), description="the group of the process")
    fs_group: GroupIds | None = Field(GroupIds(), description="the group that owns the volumes")
    supplemental_groups: GroupIds | None = Field(GroupIds(), description="further groups of the process")


def validate(request: Request, params: Groups) -> Violations:
    """Yield a violation for each group that may not be set, and for each that is missing."""
    pod = request.pod()
    if params.run_as_group is not None:
        for context in contexts(request):
            yield from params.run_as_group.judge(context, RUN_AS_GROUP, context.integer(RUN_AS_GROUP))
        if params.run_as_group.required and not is_windows(pod):
            yield from missing(request, RUN_AS_GROUP, params.run_as_group.rule)
    if pod is None:
        return
    of_pod = (FS_GROUP, params.fs_group, [pod.integer(FS_GROUP)])
    further = (SUPPLEMENTAL, params.supplemental_groups, pod.integers(SUPPLEMENTAL))
    for path, group, found in (of_pod, further):
        if group is not None:
            yield from group.judge(pod, path, *found)
            if group.required and not pod.is_set(path) and not is_windows(pod):
                yield pod.violation(path, None, group.rule, "set it", found="unset")


POLICY = Policy("group-ids", Groups, validate=validate, category="pod-security")
