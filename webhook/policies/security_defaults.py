"""Sets the restricted security context on pods that set none.

Why: the safe setting should be the default. With these defaults a Linux pod that sets nothing meets the restricted
level of the Pod Security Standards. Fields that are set stay unchanged.

Sets, where nothing is set: `runAsNonRoot: true` and `seccompProfile: {type: RuntimeDefault}` on the pod, which its
containers inherit; `allowPrivilegeEscalation: false` on each container, and ALL appended to its `capabilities.drop`. If
one container is exempt, the pod's settings go to the other containers instead.

Exempt: Windows pods and pods in a user namespace (`hostUsers: false`); privileged containers; `runAsNonRoot` of
containers with user 0 or added root capabilities; `allowPrivilegeEscalation` of containers that add SYS_ADMIN; added
capabilities, which are not dropped. Existing Pods and Jobs are immutable and not changed, except for new ephemeral
containers of a Pod. ReplicaSets of a Deployment are not changed, since the Deployment would no longer recognize them.
An update that does not change the pod template is not changed, since that would restart its pods.
Fix: for an image that needs more, set it explicitly: `securityContext: {runAsNonRoot: false}`.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from webhook.engine import Container, Fields, Params, Patches, Policy, Request
from webhook.policies._owners import is_controlled
from webhook.policies._security_contexts import in_user_namespace, is_windows
from webhook.policies.capabilities import ADD, ALL, DROP, Capability

FOR_ANY_USER = {"NET_BIND_SERVICE"}
COPIES = {"ReplicaSet", "ReplicationController"}  # whose controllers find them again by comparing templates
CONTEXT = "securityContext"

Id = Annotated[int, Field(ge=1, le=2**31 - 1)]


class Wishes(NamedTuple):
    """What a container asks for itself, which its defaults must not contradict."""

    container: Container
    added: list[str]
    dropped: list[str]
    is_privileged: bool
    is_root: bool  # it runs as user 0, or adds what only root keeps: another user loses capabilities at the start
    wants_root: bool


class SecurityDefaults(Params):
    """What is set where nothing is."""

    run_as_non_root: bool = Field(True, description="set runAsNonRoot to true")
    seccomp_profile: bool = Field(True, description="set the seccomp profile to RuntimeDefault")
    privilege_escalation: bool = Field(True, description="set allowPrivilegeEscalation to false")
    drop_capabilities: list[Capability] = Field([ALL], description="capabilities to drop, without CAP_")
    read_only_root_filesystem: bool = Field(False, description="set readOnlyRootFilesystem to true")
    run_as_user: Id | None = Field(None, description="user id to set, unless the pod requests root")
    run_as_group: Id | None = Field(None, description="group id to set")
    fs_group: Id | None = Field(None, description="group id of volumes to set")
    supplemental_groups: list[Id] = Field([], description="ids of further groups to set")
    selinux_level: str | None = Field(None, description="SELinux level to set, such as s0:c123,c456")

    @cached_property
    def inherited(self) -> list[tuple[str, Any, str]]:
        """The settings that a pod hands down: path, value, and which of their wishes leaves containers alone."""
        settings = (
            ("runAsNonRoot", self.run_as_non_root or None, "is_root"),
            ("runAsUser", self.run_as_user, "wants_root"),
            ("runAsGroup", self.run_as_group, "wants_root"),
            ("seLinuxOptions.level", self.selinux_level, "is_privileged"),
            ("seccompProfile.type", "RuntimeDefault" if self.seccomp_profile else None, "is_privileged"),
        )
        return [(f"{CONTEXT}.{field}", value, exempt) for field, value, exempt in settings if value is not None]


def mutate(request: Request, params: SecurityDefaults) -> Patches:
    """Yield a default for each setting that is not made."""
    pod = request.pod()
    if pod is not None and (is_windows(pod) or _selects_windows(pod) or in_user_namespace(pod)):
        return
    is_debugged = request.attributes.subresource == "ephemeralcontainers"
    if not is_debugged and not _is_created_now(request):
        return
    user = None if pod is None else pod.integer(f"{CONTEXT}.runAsUser")
    non_root = None if pod is None else pod.boolean(f"{CONTEXT}.runAsNonRoot")
    wishes = [_wishes(each, user, non_root) for each in (_new(request) if is_debugged else request.containers())]
    hands_down = not is_debugged and not request.excepted  # what an exception is about must not inherit
    yield from _inherited(wishes, pod, params, hands_down=hands_down)
    for each in wishes:
        if not each.is_privileged:
            yield from _of_container(each, params)
    if pod is not None and not is_debugged:
        if params.fs_group is not None:
            yield pod.set(f"{CONTEXT}.fsGroup", params.fs_group)
        if params.supplemental_groups:
            yield pod.set(f"{CONTEXT}.supplementalGroups", params.supplemental_groups)


def _selects_windows(pod: Fields) -> bool:
    return pod.texts("nodeSelector").get("kubernetes.io/os") == "windows"


def _is_created_now(request: Request) -> bool:
    """Whether the pod is new, or its template is new and no copy."""
    if request.kind in COPIES and is_controlled(request):
        return False
    before = request.before()
    if before is None:
        return True
    return request.kind not in ("Pod", "Job") and _template(request) != _template(before)


def _template(request: Request) -> dict[str, Any]:
    pod = request.pod()
    return pod.value if pod is not None else request.mapping("spec")


def _new(request: Request) -> list[Container]:
    """Return the ephemeral containers that the running pod did not have."""
    before = request.before()
    old = {each.name for each in before.containers()} if before is not None else set()
    return [each for each in request.containers() if each.list == "ephemeralContainers" and each.name not in old]


def _wishes(container: Container, user: int | None, non_root: bool | None) -> Wishes:
    """Return what a container asks for, whose pod asks for `user` and `non_root`."""
    added: list[str] = []
    dropped: list[str] = []
    is_privileged = False
    if container.security_context:
        added, dropped = container.strings(ADD), container.strings(DROP)
        is_privileged = container.boolean(f"{CONTEXT}.privileged") is True
        own_user, own_non_root = container.integer(f"{CONTEXT}.runAsUser"), container.boolean(f"{CONTEXT}.runAsNonRoot")
        user = user if own_user is None else own_user
        non_root = non_root if own_non_root is None else own_non_root
    is_root = is_privileged or user == 0 or not FOR_ANY_USER.issuperset(added)
    return Wishes(container, added, dropped, is_privileged, is_root, is_root or non_root is False)


def _inherited(wishes: Iterable[Wishes], pod: Fields | None, params: SecurityDefaults, *, hands_down: bool) -> Patches:
    """Yield what containers inherit: on the pod, unless it may not hand it down or some container is left alone."""
    for path, value, exempt in params.inherited:
        if pod is not None and pod.is_set(path):
            continue
        unset = [each for each in wishes if not (each.container.security_context and each.container.is_set(path))]
        free = [each.container for each in unset if not getattr(each, exempt)]
        if pod is not None and hands_down and free and len(free) == len(unset):
            yield pod.set(path, value)
        else:
            yield from (container.set(path, value) for container in free)


def _of_container(wishes: Wishes, params: SecurityDefaults) -> Patches:
    container, dropped = wishes.container, wishes.dropped
    added = {each.upper().removeprefix("CAP_") for each in wishes.added}
    if params.privilege_escalation and added.isdisjoint((ALL, "SYS_ADMIN")):
        yield container.set(f"{CONTEXT}.allowPrivilegeEscalation", False)
    if params.read_only_root_filesystem:
        yield container.set(f"{CONTEXT}.readOnlyRootFilesystem", True)
    drop = [each for each in params.drop_capabilities if each not in dropped and each not in added]
    if drop and ALL not in dropped and ALL not in added:
        yield container.set(DROP, [*dropped, *drop], overwrite=True)


POLICY = Policy("security-defaults", SecurityDefaults, mutate=mutate, category="pod-security", severity="high")
