"""Containers run with approved group ids (default: any but 0).

Why: group 0 is root's group, and a process can read files of volumes, other pods and the node that belong to the same
group id.

Judged: `runAsGroup` of the pod and of each container, `fsGroup` and each of `supplementalGroups` of the pod.

Allowed: `runAsGroup: 1000`; none, where the group is not `required`.
Denied:  `runAsGroup: 0`; an id outside of what is allowed.
Fix: set an id that is allowed, or remove the field.
See: https://kubernetes.io/docs/tasks/configure-pod-container/security-context/
"""

from collections.abc import Sequence
from functools import cached_property

from pydantic import Field

from webhook.engine import Fields, Params, Policy, Request, Violations
from webhook.engine.ranges import Range, any_holds, listed
from webhook.engine.security_contexts import contexts, is_windows, missing

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

    def judge(self, holder: Fields, path: str, found: int | None) -> Violations:
        """Yield a violation where the id found may not be set."""
        if found is not None and not any_holds(self.allowed, found):
            yield holder.violation(path, found, self.rule, "set an id that is allowed")

    def judge_pod(self, pod: Fields, path: str, found: Sequence[int | None]) -> Violations:
        """Yield a violation for each id of the pod that may not be set, and where one is missing."""
        for each in found:
            yield from self.judge(pod, path, each)
        if self.required and not pod.is_set(path) and not is_windows(pod):
            yield pod.violation(path, None, self.rule, "set it", found="unset")


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
    if params.fs_group is not None:
        yield from params.fs_group.judge_pod(pod, FS_GROUP, [pod.integer(FS_GROUP)])
    if params.supplemental_groups is not None:
        yield from params.supplemental_groups.judge_pod(pod, SUPPLEMENTAL, pod.integers(SUPPLEMENTAL))


POLICY = Policy("group-ids", Groups, validate=validate, category="pod-security")
