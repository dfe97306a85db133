"""Containers run with approved group ids (default: any but 0).

Why: group 0 is root's group, and a process can read files of volumes, other pods and the node that
belong to the same group id.

Judged: `runAsGroup` of the pod and of each container, `fsGroup` and each of `supplementalGroups` of
the pod.

Allowed: `runAsGroup: 1000`; none, where the group is not `required`.
Denied:  `runAsGroup: 0`; an id outside of what is allowed.
Fix: set an id that is allowed, or remove the field.
See: https://kubernetes.io/docs/tasks/configure-pod-container/security-context/
"""

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violations
from webhook.policies._ranges import any_holds, format_ranges
from webhook.policies._security_contexts import Ids, is_windows

RUN_AS_GROUP = "securityContext.runAsGroup"
FS_GROUP = "securityContext.fsGroup"
SUPPLEMENTAL = "securityContext.supplementalGroups"


class Groups(Params):
    """Which groups containers may run in; null leaves a group unjudged."""

    run_as_group: Ids | None = Field(Ids(), description="the group of the process")
    fs_group: Ids | None = Field(Ids(), description="the group that owns the volumes")
    supplemental_groups: Ids | None = Field(Ids(), description="further groups of the process")


def validate(request: Request, params: Groups) -> Violations:
    """Yield a violation for each group that may not be set, and for each that is missing."""
    if params.run_as_group is not None:
        yield from params.run_as_group.judge(request, RUN_AS_GROUP, _rule(params.run_as_group))
    pod = request.pod()
    if pod is None:
        return
    for path, group in ((FS_GROUP, params.fs_group), (SUPPLEMENTAL, params.supplemental_groups)):
        if group is None:
            continue
        ids = pod.integers(path) if path == SUPPLEMENTAL else [pod.integer(path)]
        for id in ids:
            if id is not None and not any_holds(group.allowed, id):
                yield pod.violation(path, id, _rule(group), "set an id that is allowed")
        if group.required and ids in ([], [None]) and not is_windows(pod):
            yield pod.violation(path, None, _rule(group), "set it", found="unset")


def _rule(group: Ids) -> str:
    return f"group ids must be within {format_ranges(group.allowed)}"


POLICY = Policy("group-ids", Groups, validate=validate, category="pod-security")
