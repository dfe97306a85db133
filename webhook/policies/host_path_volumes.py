"""Pods mount only approved directories of the node.

Why: the node's filesystem contains the kubelet's keys, the container runtime's socket, and the data
of every pod on the node. A pod that can write there controls the node.

Judged: `hostPath` volumes of pods, and PersistentVolumes, which any pod can mount through a claim.
Paths are compared by whole components: `/var/log` contains `/var/log/pods` but not `/var/logs`. A
path with `..` never matches. `denied` covers a path with backslashes also as Windows nodes read it,
with slashes. Symbolic links on the node are not resolved: list both `/var/run` and `/run`.
PersistentVolumes of type `local` are ignored.

Allowed: no `hostPath`; one below a prefix of `allowed`, mounted with `readOnly: true` where
`read_only` is set.
Denied:  `hostPath: {path: /etc}`; a path below or above an entry of `denied`, such as the runtime's
socket.
Fix: use an emptyDir, a configMap or a persistentVolumeClaim.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
"""

from typing import Annotated

from pydantic import AfterValidator, Field

from webhook.engine import Params, Policy, Request, Violations
from webhook.engine.kinds import PERSISTENT_VOLUME
from webhook.engine.violation import shown
from webhook.policies._records import having

PATH = "hostPath.path"
FIX = "use an emptyDir, a configMap or a persistentVolumeClaim"


def _directory(path: str) -> str:
    """Return a path between slashes, so that a prefix of it has whole components."""
    return "/".join(("", *(part for part in path.split("/") if part not in ("", ".")), ""))


def _absolute(path: str) -> str:
    if not path.startswith("/") or ".." in path.split("/"):
        raise ValueError("expected an absolute path without ..")
    return path


HostPath = Annotated[str, AfterValidator(_absolute)]


class AllowedHostPath(Params):
    """A directory of the node that may be mounted, with everything below it."""

    prefix: HostPath = Field(description="absolute path on the node")
    read_only: bool = Field(False, description="whether every mount of it must be readOnly")


class HostPathVolumes(Params):
    """Which paths of the node pods may mount."""

    allowed: list[AllowedHostPath] = Field([], description="what may be mounted")
    denied: list[HostPath] = Field(
        [],
        description=(
            "paths that may not be mounted even if an allowed path contains them, nor their parents"
        ),
    )


def validate(request: Request, params: HostPathVolumes) -> Violations:
    """Yield a violation for each hostPath volume, or each mount of one, that is not allowed."""
    is_shared = request.kind == PERSISTENT_VOLUME.kind  # any pod can mount it, for writing too
    for_reading: dict[str | None, str] = {}  # paths by volume name
    for volume in having((request.fields("spec"),) if is_shared else request.volumes(), "hostPath"):
        path = volume.string(PATH) or ""
        directory, on_windows = _directory(path), _directory(path.replace("\\", "/"))
        holding = [each for each in params.allowed if directory.startswith(_directory(each.prefix))]
        allowing = holding if "/../" not in on_windows else []
        is_for_reading = all(each.read_only for each in allowing)
        denied = [*map(_directory, params.denied)]
        if any(_overlap(directory, each) or _overlap(on_windows, each) for each in denied):
            rule = f"nothing may be mounted that holds, or is in, {', '.join(params.denied)}"
            yield volume.violation(PATH, path, rule, FIX)
        elif not allowing:
            prefixes = ", ".join(each.prefix for each in params.allowed)
            no = "pods must not mount paths of the node"
            rule = f"host paths must be in {prefixes}" if prefixes else no
            yield volume.violation(PATH, path, rule, FIX)
        elif is_for_reading and is_shared:
            rule = "a path that may only be mounted for reading must not be a PersistentVolume"
            yield volume.violation(PATH, path, rule, FIX)
        elif is_for_reading:
            for_reading[volume.string("name")] = path
    for container in request.containers() if for_reading else ():
        for mount in container.each("volumeMounts"):
            if (name := mount.string("name")) in for_reading and not mount.boolean("readOnly"):
                rule = f"{shown(for_reading[name])} of the node may only be mounted for reading"
                yield mount.violation(
                    "readOnly", for_reading[name], rule, "set it to true", found="not true"
                )


def _overlap(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


POLICY = Policy(
    "host-path-volumes",
    HostPathVolumes,
    validate=validate,
    kinds=("pods", PERSISTENT_VOLUME),
    category="pod-security",
    severity="high",
)
