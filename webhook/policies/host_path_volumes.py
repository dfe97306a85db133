"""Pods mount only approved directories of the node.

Why: the node's filesystem contains the kubelet's keys, the container runtime's socket, and the data of every pod on the
node. A pod that can write there controls the node.

Judged: `hostPath` volumes of pods, and PersistentVolumes, which any pod can mount through a claim. Paths are compared
by whole components: `/var/log` contains `/var/log/pods` but not `/var/logs`. A path with `..` never matches. Symbolic
links on the node are not resolved: list both `/var/run` and `/run`.

Allowed: no `hostPath`; one below a prefix of `allowed`, mounted with `readOnly: true` where `read_only` is set.
Denied:  `hostPath: {path: /etc}`; a path below or above an entry of `denied`, such as the runtime's socket.
Fix: use an emptyDir, a configMap or a persistentVolumeClaim.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated

from pydantic import AfterValidator, Field

from webhook.engine import Fields, Params, Policy, Request, Violations
from webhook.engine.kinds import PERSISTENT_VOLUME
from webhook.engine.violation import shown

PATH = "hostPath.path"
FIX = "use an emptyDir, a configMap or a persistentVolumeClaim"

Parts = tuple[str, ...]


def _host_path(path: str) -> str:
    if not path.startswith("/") or ".." in _parts(path):
        raise ValueError("expected an absolute path without ..")
    return path


def _parts(path: str) -> Parts:
    return tuple(part for part in path.split("/") if part not in ("", "."))


HostPath = Annotated[str, AfterValidator(_host_path)]


class AllowedHostPath(Params):
    """A directory of the node that may be mounted, with all that is below it."""

    prefix: HostPath = Field(description="absolute path on the node")
    read_only: bool = Field(False, description="whether every mount of it must be readOnly")


class HostPathVolumes(Params):
    """Which paths of the node pods may mount."""

    allowed: list[AllowedHostPath] = Field([], description="what may be mounted")
    denied: list[HostPath] = Field(
        [], description="paths that may not be mounted even where they are allowed, nor anything that holds them"
    )

    @cached_property
    def prefixes(self) -> tuple[tuple[Parts, bool], ...]:
        """What may be mounted, as parts of a path, and whether only for reading."""
        return tuple((_parts(each.prefix), each.read_only) for each in self.allowed)

    def prefixes_of(self, parts: Parts) -> list[bool]:
        """Return, for each allowed directory that holds a path, whether it is only for reading."""
        return [only for prefix, only in self.prefixes if _is_within(parts, prefix) and ".." not in parts]

    def is_for_reading(self, parts: Parts) -> bool:
        """Return whether a path is allowed, but only for reading."""
        found = self.prefixes_of(parts)
        return bool(found) and all(found)

    @cached_property
    def kept(self) -> tuple[Parts, ...]:
        """What may not be mounted, as parts of a path."""
        return tuple(map(_parts, self.denied))


def validate(request: Request, params: HostPathVolumes) -> Violations:
    """Yield a violation for each hostPath volume, or each mount of one, that is not allowed."""
    if request.kind == PERSISTENT_VOLUME.kind:
        yield from _of_volume(request.fields("spec"), params, shared=True)
        return
    for_reading: dict[str, str] = {}  # volumes by name, with their paths
    for volume in request.volumes():
        yield from _of_volume(volume, params)
        path = volume.string(PATH) or ""
        if volume.is_set("hostPath") and params.is_for_reading(_parts(path)):
            for_reading[volume.string("name") or ""] = path
    if for_reading:
        yield from _written(request, for_reading)


def _of_volume(volume: Fields, params: HostPathVolumes, *, shared: bool = False) -> Violations:
    """Yield a violation where a volume is a path that is not allowed; a `shared` one may be mounted for writing."""
    if not volume.is_set("hostPath"):
        return
    path = volume.string(PATH) or ""
    parts = _parts(path)
    if any(_is_within(parts, kept) or _is_within(kept, parts) for kept in params.kept):
        rule = f"nothing may be mounted that holds, or is in, {', '.join(params.denied)}"
    elif not params.prefixes_of(parts):
        prefixes = ", ".join(each.prefix for each in params.allowed)
        rule = f"host paths must be in {prefixes}" if prefixes else "pods must not mount paths of the node"
    elif shared and params.is_for_reading(parts):
        rule = "a path that may only be mounted for reading must not be a PersistentVolume"
    else:
        return
    yield volume.violation(PATH, path, rule, FIX)


def _written(request: Request, for_reading: Mapping[str, str]) -> Violations:
    """Yield a violation for each mount of such a volume that is not read-only."""
    for container in request.containers():
        for mount in container.each("volumeMounts"):
            path = for_reading.get(mount.string("name") or "")
            if path is not None and not mount.boolean("readOnly"):
                rule = f"{shown(path)} of the node may only be mounted for reading"
                yield mount.violation("readOnly", path, rule, "set it to true", found="not true")


def _is_within(parts: Parts, prefix: Parts) -> bool:
    return parts[: len(prefix)] == prefix


POLICY = Policy(
    "host-path-volumes",
    HostPathVolumes,
    validate=validate,
    kinds=("pods", PERSISTENT_VOLUME),
    category="pod-security",
    severity="high",
)
