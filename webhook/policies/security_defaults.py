"""Pods run without root's rights unless they say otherwise.

Why: the safe setting should be the one that needs no typing. A Linux pod that sets nothing passes the restricted level
of the Pod Security Standards; what somebody has set stays as it is, whatever it is.

Sets, where nothing is set: `runAsNonRoot: true` and `seccompProfile: {type: RuntimeDefault}` on the pod, which its
containers inherit; `allowPrivilegeEscalation: false` on each container, and ALL in its `capabilities.drop`, after what
is there. Settings of the pod go to the containers instead where one of them is left alone.

Left alone: Windows pods and pods in a user namespace (`hostUsers: false`); privileged containers; `runAsNonRoot` for a
user 0 and for who adds capabilities of root; `allowPrivilegeEscalation` of who adds SYS_ADMIN, and the dropping of what
is added. Nothing is set on a running pod, or on a Job that exists, which cannot change, but on ephemeral containers
that are added to it; nor on a ReplicaSet that a Deployment made, which would not know it again; nor by an update that
leaves the template as it was, which would restart its pods.
Fix: an image that needs more says so: `securityContext: {runAsNonRoot: false}`.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
"""

from collections.abc import Callable, Iterator
from typing import Annotated, Any

from pydantic import Field

from webhook.engine import Fields, Params, Patch, Policy, Request
from webhook.engine.security_contexts import in_user_namespace, is_windows
from webhook.policies.capabilities import ADD, ALL, DROP, Capability

CONTEXT = "securityContext"
OS_LABEL = "kubernetes.io/os"
FOR_ANY_USER = {"NET_BIND_SERVICE"}
COPIES = {"ReplicaSet", "ReplicationController"}  # whose controllers find them again by comparing templates

Keeps = Callable[[Fields, Fields | None], bool]


class SecurityDefaults(Params):
    """What is set where nothing is."""

    run_as_non_root: bool = Field(True, description="set runAsNonRoot to true")
    seccomp_profile: bool = Field(True, description="set the seccomp profile to RuntimeDefault")
    privilege_escalation: bool = Field(True, description="set allowPrivilegeEscalation to false")
    drop_capabilities: list[Capability] = Field([ALL], description="capabilities to drop, without CAP_")
    read_only_root_filesystem: bool = Field(False, description="set readOnlyRootFilesystem to true")
    run_as_user: int | None = Field(None, ge=1, le=2**31 - 1, description="user id to set, where root is not asked for")
    run_as_group: int | None = Field(None, ge=1, le=2**31 - 1, description="group id to set")
    fs_group: int | None = Field(None, ge=1, le=2**31 - 1, description="group id of volumes to set")
    supplemental_groups: list[Annotated[int, Field(ge=1, le=2**31 - 1)]] = Field(
        [], description="ids of further groups to set"
    )
    selinux_level: str | None = Field(None, description="SELinux level to set, such as s0:c123,c456")


def mutate(request: Request, params: SecurityDefaults) -> Iterator[Patch]:
    """Yield a default for each setting that nobody made."""
    pod = request.pod()
    if _runs_elsewhere(pod) or in_user_namespace(pod):
        return
    if request.attributes.subresource == "ephemeralcontainers":
        yield from _defaults(params, pod, None, _added(request))
    elif _is_made_now(request):
        yield from _defaults(params, pod, pod, list(request.containers()))
        if pod is not None:
            yield from _of_pod(pod, params)


def _runs_elsewhere(pod: Fields | None) -> bool:
    return is_windows(pod) or (pod is not None and pod.texts("nodeSelector").get(OS_LABEL) == "windows")


def _is_made_now(request: Request) -> bool:
    """Whether the pod is new, or its template is new and no copy."""
    if request.kind in COPIES and any(
        owner.boolean("controller") for owner in request.each("metadata.ownerReferences")
    ):
        return False
    before = request.before()
    if before is None:
        return True
    return request.kind not in ("Pod", "Job") and _template(request) != _template(before)


def _template(request: Request) -> dict[str, Any]:
    pod = request.pod()
    return pod.value if pod is not None else request.mapping("spec")


def _added(request: Request) -> list[Fields]:
    """Return the ephemeral containers that the running pod did not have."""
    before = request.before()
    old = before.pod() if before is not None else None
    names = {container.string("name") for container in old.each("ephemeralContainers")} if old is not None else set()
    pod = request.pod()
    new = pod.each("ephemeralContainers") if pod is not None else ()
    return [container for container in new if container.string("name") not in names]


def _defaults(
    params: SecurityDefaults, pod: Fields | None, settable: Fields | None, containers: list[Fields]
) -> Iterator[Patch]:
    """Yield the defaults of `containers`, and of their pod where it is `settable`."""
    inherited: tuple[tuple[str, Any, Keeps], ...] = (
        ("runAsNonRoot", params.run_as_non_root or None, _is_root),
        ("runAsUser", params.run_as_user, _wants_root),
        ("runAsGroup", params.run_as_group, _wants_root),
        ("seLinuxOptions.level", params.selinux_level, _is_privileged),
        ("seccompProfile.type", "RuntimeDefault" if params.seccomp_profile else None, _is_privileged),
    )
    for field, value, keeps in inherited:
        path = f"{CONTEXT}.{field}"
        if value is None or (pod is not None and pod.is_set(path)):
            continue
        unset = [container for container in containers if not container.is_set(path)]
        free = [container for container in unset if not keeps(container, pod)]
        holders = [settable] if settable is not None and free and len(free) == len(unset) else free
        yield from (Patch(holder.steps(path), value) for holder in holders)
    for container in containers:
        if not _is_privileged(container, pod):
            yield from _of_container(container, params)


def _of_pod(pod: Fields, params: SecurityDefaults) -> Iterator[Patch]:
    if params.fs_group is not None:
        yield Patch(pod.steps(f"{CONTEXT}.fsGroup"), params.fs_group)
    if params.supplemental_groups:
        yield Patch(pod.steps(f"{CONTEXT}.supplementalGroups"), params.supplemental_groups)


def _of_container(container: Fields, params: SecurityDefaults) -> Iterator[Patch]:
    added = {each.upper().removeprefix("CAP_") for each in container.strings(ADD)}
    dropped = container.strings(DROP)
    if params.privilege_escalation and not added & {ALL, "SYS_ADMIN"}:
        yield Patch(container.steps(f"{CONTEXT}.allowPrivilegeEscalation"), False)
    if params.read_only_root_filesystem:
        yield Patch(container.steps(f"{CONTEXT}.readOnlyRootFilesystem"), True)
    drop = [each for each in params.drop_capabilities if each not in dropped and each not in added]
    if drop and not {ALL} & {*dropped, *added}:
        yield Patch(container.steps(DROP), [*dropped, *drop], overwrite=True)


def _is_privileged(container: Fields, pod: Fields | None) -> bool:
    return container.boolean(f"{CONTEXT}.privileged") is True


def _is_root(container: Fields, pod: Fields | None) -> bool:
    """Whether it is told to be root, or adds what only root has: a capability is lost where another user starts."""
    added = {*container.strings(ADD)} - FOR_ANY_USER
    return _is_privileged(container, pod) or bool(added) or _effective(container, pod, Fields.integer, "runAsUser") == 0


def _wants_root(container: Fields, pod: Fields | None) -> bool:
    return _is_root(container, pod) or _effective(container, pod, Fields.boolean, "runAsNonRoot") is False


def _effective(container: Fields, pod: Fields | None, read: Callable[[Fields, str], Any], field: str) -> Any:
    own = read(container, f"{CONTEXT}.{field}")
    return own if own is not None or pod is None else read(pod, f"{CONTEXT}.{field}")


POLICY = Policy("security-defaults", SecurityDefaults, mutate=mutate, category="pod-security", severity="high")
