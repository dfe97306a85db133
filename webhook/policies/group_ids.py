"""Containers run with approved group ids (default: any but 0).

Why: group 0 is root's group, and a process can read files of volumes, other pods and the node that belong to the same
group id.

Judged: `runAsGroup` of the pod and of each container, `fsGroup` and each of `supplementalGroups` of the pod.

Allowed: `runAsGroup: 1000`; none, where the group is not `required`.
Denied:  `runAsGroup: 0`; an id outside of what is allowed.
Fix: set an id that is allowed, or remove the field.
See: https://kubernetes.io/docs/tasks/configure-pod-container/security-context/
"""

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violations
from webhook.policies._ranges import Range, any_holds, listed
from webhook.policies._security_contexts import contexts, inherited, is_windows, missing

RUN_AS_GROUP = "securityContext.runAsGroup"
FS_GROUP = "securityContext.fsGroup"
SUPPLEMENTAL = "securityContext.supplementalGroups"


class GroupIds(Params):
    """Which ids one of the groups may have."""

    allowed: list[Range] = Field(
        [Range(minimum=1, maximum=2**31 - 1)], min_length=1, description="ranges of group ids that may be set"
    )
    required: bool = Field(False, description="whether it must be set")


class Groups(Params):
    """Which groups containers may run in; null leaves a group unjudged."""

    run_as_group: GroupIds | None = Field(GroupIds(), description="the group of the process")
    fs_group: GroupIds | None = Field(GroupIds(), description="the group that owns the volumes")
    supplemental_groups: GroupIds | None = Field(GroupIds(), description="further groups of the process")


def validate(request: Request, params: Groups) -> Violations:
    """Yield a violation for each group that may not be set, and for each that is missing."""
    pod = request.pod()
    groups = [(RUN_AS_GROUP, params.run_as_group, [(each, each.integer(RUN_AS_GROUP)) for each in contexts(request)])]
    if pod is not None:
        groups.append((FS_GROUP, params.fs_group, [(pod, pod.integer(FS_GROUP))]))
        groups.append((SUPPLEMENTAL, params.supplemental_groups, [(pod, each) for each in pod.integers(SUPPLEMENTAL)]))
    for path, group, found in groups:
        if group is None:
            continue
        rule = f"group ids must be within {listed(group.allowed)}"
        for holder, id in found:
            if id is not None and not any_holds(group.allowed, id):
                excess = inherited(request, holder, path, id) if path == RUN_AS_GROUP else None
                yield holder.violation(path, id, rule, "set an id that is allowed", excess=excess)
        if not group.required or is_windows(pod):
            continue
        if path == RUN_AS_GROUP:
            yield from missing(request, path, rule)
        elif pod is not None and not pod.is_set(path):
            yield pod.violation(path, None, rule, "set it", found="unset")


POLICY = Policy("group-ids", Groups, validate=validate, category="pod-security")
