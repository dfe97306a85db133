"""Containers run in groups with approved ids: any but 0, unless told.

Why: group 0 is root's, and a group that a volume, another pod or the node uses as well shares its files.

Judged: `runAsGroup` of the pod and of each container, `fsGroup` and each of `supplementalGroups` of the pod.

Allowed: `runAsGroup: 1000`; none, where the group is not `required`.
Denied:  `runAsGroup: 0`; an id outside of what is allowed.
Fix: set an id that is allowed, or remove the field.
See: https://kubernetes.io/docs/tasks/configure-pod-container/security-context/
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violation
from webhook.engine.ranges import Range, any_holds, told
from webhook.engine.security_contexts import contexts, is_windows

RUN_AS_GROUP = "securityContext.runAsGroup"
FS_GROUP = "securityContext.fsGroup"
SUPPLEMENTAL = "securityContext.supplementalGroups"
FIX = "set an id that is allowed"


class GroupIds(Params):
    """Which ids one of the groups may have."""

    allowed: list[Range] = Field(
        [Range(minimum=1, maximum=2**31 - 1)], min_length=1, description="ranges of group ids that may be set"
    )
    required: bool = Field(False, description="whether it must be set")

    def judge(self, path: str, found: int | None) -> Iterator[Violation]:
        """Yield a violation where the id found is not allowed; none found is another question."""
        if found is not None and not any_holds(self.allowed, found):
            yield Violation(path, found, f"group ids must be within {told(self.allowed)}", FIX)


class Groups(Params):
    """Which groups containers may run in; null leaves a group unjudged."""

    run_as_group: GroupIds | None = Field(GroupIds(), description="the group of the process")
    fs_group: GroupIds | None = Field(GroupIds(), description="the group that owns the volumes")
    supplemental_groups: GroupIds | None = Field(GroupIds(), description="further groups of the process")


def validate(request: Request, params: Groups) -> Iterator[Violation]:
    """Yield a violation for each group that may not be set, and for each that is missing."""
    pod = request.pod()
    may_be_missing = is_windows(pod)  # where the API forbids them
    if params.run_as_group is not None:
        for context in contexts(request):
            yield from params.run_as_group.judge(context.path(RUN_AS_GROUP), context.integer(RUN_AS_GROUP))
        if params.run_as_group.required and not may_be_missing:
            yield from _without_group(request)
    if pod is None:
        return
    if params.fs_group is not None:
        found = pod.integer(FS_GROUP)
        yield from params.fs_group.judge(pod.path(FS_GROUP), found)
        if found is None and params.fs_group.required and not may_be_missing:
            yield Violation(pod.path(FS_GROUP), "unset", "must be set", FIX)
    if params.supplemental_groups is not None:
        groups = pod.integers(SUPPLEMENTAL)
        for group in groups:
            yield from params.supplemental_groups.judge(pod.path(SUPPLEMENTAL), group)
        if not groups and params.supplemental_groups.required and not may_be_missing:
            yield Violation(pod.path(SUPPLEMENTAL), "unset", "must be set", FIX)


def _without_group(request: Request) -> Iterator[Violation]:
    pod = request.pod()
    if pod is not None and pod.integer(RUN_AS_GROUP) is not None:
        return
    for container in request.containers():
        if container.integer(RUN_AS_GROUP) is None:
            yield Violation(container.path(RUN_AS_GROUP), "unset", "must be set", f"{FIX}, best on the pod")


POLICY = Policy("group-ids", Groups, validate=validate, category="pod-security")
