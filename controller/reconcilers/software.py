"""The software of a server, and its version: the requested one, if it can open the existing data.

The data's version is a label of its claim, which outlives the server. It is written only once the
server is ready, so a version whose image does not exist can be reverted.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from config.data_versions import refusal
from controller.reconcilers.labels import metadata_origin
from controller.runtime.plan import Problem
from kube.resource import JsonObject

LABEL = "app.kubernetes.io/version"
SOFTWARE_LABEL = "app.kubernetes.io/name"
MANAGED = {"app.kubernetes.io/managed-by": "gatewright"}


class Software(NamedTuple):
    """What servers of one software have in common."""

    name: str  # also of its container and its volume
    component: str  # of the stack: its field is spec.<component>
    version: str  # by default
    port: int
    port_name: str
    passwords: Sequence[str]  # keys of the Secret
    image_suffix: str = ""  # of the image's tag

    @property
    def labels(self) -> dict[str, str]:
        """The labels of all its objects."""
        return {SOFTWARE_LABEL: self.name, **MANAGED}

    @property
    def metadata_origin(self) -> dict[str, str]:
        """The origins of a child's name and labels."""
        return {**metadata_origin(own=self.labels), **self.label_origins()}

    def label_origins(self, *places: str) -> dict[str, str]:
        """Return the origins of what follows from the software: its label at these places, too."""
        labels = (f"{place}metadata.labels[{SOFTWARE_LABEL}]" for place in ("", *places))
        return dict.fromkeys(("spec", *labels), f"spec.{self.component}.type")


class ServerVersions(NamedTuple):
    """The version to run, the version of the data, and the problem of the requested version."""

    server: str
    data: str | None
    wrong: Problem | None

    @property
    def labels(self) -> dict[str, str]:
        """The labels that record the version on a claim."""
        return {LABEL: self.data} if self.data else {}


def versions(
    software: Software,
    requested: str | None,
    stateful_set: JsonObject | None,
    claims: Iterable[JsonObject],
    *,
    is_ready: bool,
) -> ServerVersions:
    """Compare the requested version with that of the existing data.

    An unset version keeps the existing one.
    """
    runs = _of(stateful_set) if stateful_set else None
    data = runs if is_ready else next(filter(None, map(_of, claims)), None)
    version = requested or data or runs or software.version
    if data and (refused := refusal(software.name, version, data)):
        wrong = f"spec.{software.component}.version: {version}; {refused}"
        return ServerVersions(data, data, Problem(wrong, "VersionChanged"))
    return ServerVersions(version, data, None)


def _of(object: JsonObject) -> str | None:
    """Return the version in the label of a StatefulSet or a claim.

    The image's name may not contain it.
    """
    labels: JsonObject = object["metadata"].get("labels", {})
    return labels.get(LABEL)
