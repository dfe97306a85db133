"""Sets the restricted security context on pods that set none.

Why: the safe setting should be the default. With these defaults a Linux pod that sets nothing meets
the restricted level of the Pod Security Standards. Fields that are set stay unchanged.

Sets, where nothing is set: `runAsNonRoot: true` and `seccompProfile: {type: RuntimeDefault}` on the
pod, which its containers inherit; `allowPrivilegeEscalation: false` on each container, and ALL
appended to its `capabilities.drop`. If one container is exempt, the pod's settings go to the other
containers instead.

Exempt: Windows pods and pods in a user namespace (`hostUsers: false`); privileged containers;
`runAsNonRoot` of containers with user 0 or added root capabilities; `allowPrivilegeEscalation` of
containers that add SYS_ADMIN; added capabilities, which are not dropped; the seccomp profile of
pods and containers with one in an old annotation (`seccomp.security.alpha.kubernetes.io/pod`),
which the API server accepts only beside an equal field. Existing Pods and Jobs are immutable and
not changed, except for new ephemeral containers of a Pod. ReplicaSets of a Deployment are not
changed, since the Deployment would no longer recognize them. An update that does not change the pod
template is not changed, since that would restart its pods.
Fix: for an image that needs more, set it explicitly: `securityContext: {runAsNonRoot: false}`.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
"""

from collections.abc import Collection
from functools import cached_property
from typing import Annotated, Any

from pydantic import Field

from webhook.engine import Container, Fields, Params, Patches, Policy, Request
from webhook.policies._records import is_copy
from webhook.policies._security_contexts import in_user_namespace, is_windows
from webhook.policies.capabilities import ADD, ALL, DROP, Capability
from webhook.policies.seccomp_profiles import CONTAINER_ANNOTATION, POD_ANNOTATION

# The API server takes a seccomp profile beside these old annotations only if both say the same.
ANNOTATED_DEFAULTS = ("runtime/default", "docker/default")
FOR_ANY_USER = {"NET_BIND_SERVICE"}
CONTEXT = "securityContext"
SECCOMP = f"{CONTEXT}.seccompProfile.type"
USER, NON_ROOT = f"{CONTEXT}.runAsUser", f"{CONTEXT}.runAsNonRoot"
OS = "kubernetes.io/os"

UserId = Annotated[int, Field(ge=1, le=2**31 - 1)]


# The privileges that a container requests; its defaults must not contradict them. Each level
# includes those before it.
NOTHING, MAY_BE_ROOT, ROOT, PRIVILEGED = range(4)


class SecurityDefaults(Params):
    """Which defaults are set."""

    run_as_non_root: bool = Field(True, description="set runAsNonRoot to true")
    seccomp_profile: bool = Field(True, description="set the seccomp profile to RuntimeDefault")
    privilege_escalation: bool = Field(True, description="set allowPrivilegeEscalation to false")
    drop_capabilities: list[Capability] = Field(
        [ALL], description="capabilities to drop, without CAP_"
    )
    read_only_root_filesystem: bool = Field(False, description="set readOnlyRootFilesystem to true")
    run_as_user: UserId | None = Field(
        None, description="user id to set, unless the pod requests root"
    )
    run_as_group: UserId | None = Field(None, description="group id to set")
    fs_group: UserId | None = Field(None, description="group id of volumes to set")
    supplemental_groups: list[UserId] = Field([], description="ids of further groups to set")
    selinux_level: str | None = Field(
        None, description="SELinux level to set, such as s0:c123,c456"
    )

    @cached_property
    def inherited(self) -> list[tuple[str, Any, int]]:
        """The pod's settings: path, value, and the level of containers that must not inherit."""
        settings = (
            (NON_ROOT, self.run_as_non_root or None, ROOT),
            (USER, self.run_as_user, MAY_BE_ROOT),
            (f"{CONTEXT}.runAsGroup", self.run_as_group, MAY_BE_ROOT),
            (f"{CONTEXT}.seLinuxOptions.level", self.selinux_level, PRIVILEGED),
            (
                SECCOMP,
                "RuntimeDefault" if self.seccomp_profile else None,
                PRIVILEGED,
            ),
        )
        return [each for each in settings if each[1] is not None]


def mutate(request: Request, params: SecurityDefaults) -> Patches:
    """Yield a patch for each unset field that has a default."""
    pod = request.pod()
    is_debugged = request.attributes.subresource == "ephemeralcontainers"
    if _is_exempt(pod) or not (is_debugged or _is_created_now(request)):
        return
    containers = _new(request) if is_debugged else request.containers()
    user = None if pod is None else pod.integer(USER)
    non_root = None if pod is None else pod.boolean(NON_ROOT)
    requested = {
        container: _requested_privilege(container, user, non_root) for container in containers
    }
    # A container with an exception must not inherit the pod's settings.
    hands_down = not is_debugged and not request.excepted
    annotated = _annotated_profiles(request)
    for path, value, exempt in params.inherited:
        by_annotation = annotated if path == SECCOMP else ()
        if pod is not None and (pod.is_set(path) or POD_ANNOTATION in by_annotation):
            continue
        unset = [
            container
            for container in containers
            if not (container.security_context and container.is_set(path))
            and f"{CONTAINER_ANNOTATION}{container.name}" not in by_annotation
        ]
        free = [each for each in unset if requested[each] < exempt]
        if pod is not None and hands_down and free and len(free) == len(unset):
            yield pod.set(path, value)
        else:
            yield from [each.set(path, value) for each in free]
    for container in containers:
        if requested[container] < PRIVILEGED:
            yield from _of_container(container, params)
    if pod is not None and not is_debugged:
        if params.fs_group is not None:
            yield pod.set(f"{CONTEXT}.fsGroup", params.fs_group)
        if params.supplemental_groups:
            yield pod.set(f"{CONTEXT}.supplementalGroups", params.supplemental_groups)


def _is_exempt(pod: Fields | None) -> bool:
    """Return whether the pod runs on Windows, or its root is unprivileged on the node."""
    if pod is None:
        return False
    return (
        is_windows(pod) or in_user_namespace(pod) or pod.texts("nodeSelector").get(OS) == "windows"
    )


def _annotated_profiles(request: Request) -> Collection[str]:
    """Return the old annotations with a seccomp profile other than the default one."""
    metadata = request.pod_metadata()
    annotations = {} if metadata is None else metadata.texts("annotations")
    return {key for key, profile in annotations.items() if profile not in ANNOTATED_DEFAULTS}


def _is_created_now(request: Request) -> bool:
    """Return whether the pod is new, or its template has changed and is not a copy."""
    before = request.before()
    is_new = before is None or (
        request.kind not in ("Pod", "Job") and _template(request) != _template(before)
    )
    return is_new and not is_copy(request)


def _template(request: Request) -> dict[str, Any]:
    """Return the part of an object whose changes restart pods: everything except replicas."""
    pod = request.pod()
    return pod.value if pod is not None else request.mapping("spec") | {"replicas": None}


def _new(request: Request) -> list[Container]:
    """Return the ephemeral containers that the running pod did not have."""
    before = request.before()
    old = {each.name for each in before.containers()} if before is not None else set()
    return [
        container
        for container in request.containers()
        if container.list == "ephemeralContainers" and container.name not in old
    ]


def _requested_privilege(container: Container, user: int | None, non_root: bool | None) -> int:
    """Return the level that a container requests if its pod requests `user` and `non_root`.

    Added capabilities that only root keeps count as a request for root: other users lose them when
    the process starts.
    """
    if container.security_context:
        if container.boolean(f"{CONTEXT}.privileged"):
            return PRIVILEGED
        own_user, own_non_root = container.integer(USER), container.boolean(NON_ROOT)
        user = user if own_user is None else own_user
        non_root = non_root if own_non_root is None else own_non_root
        if not FOR_ANY_USER.issuperset(container.strings(ADD)):
            return ROOT
    return ROOT if user == 0 else MAY_BE_ROOT if non_root is False else NOTHING


def _of_container(container: Container, params: SecurityDefaults) -> Patches:
    added, dropped = set[str](), list[str]()
    if container.security_context:
        added = {each.upper().removeprefix("CAP_") for each in container.strings(ADD)}
        dropped = container.strings(DROP)
    if params.privilege_escalation and added.isdisjoint((ALL, "SYS_ADMIN")):
        yield container.set(f"{CONTEXT}.allowPrivilegeEscalation", False)
    if params.read_only_root_filesystem:
        yield container.set(f"{CONTEXT}.readOnlyRootFilesystem", True)
    drop = [each for each in params.drop_capabilities if each not in dropped and each not in added]
    if drop and ALL not in dropped and ALL not in added:
        yield container.set(DROP, [*dropped, *drop], overwrite=True)


POLICY = Policy(
    "security-defaults", SecurityDefaults, mutate=mutate, category="pod-security", severity="high"
)
