"""The version of a MySQL server: the requested one, if it can open the existing data.

The data's version is a label of its claim, which outlives the server. It is written only once the
server is ready, so a version whose image does not exist can be reverted.
"""

from collections.abc import Iterable
from typing import NamedTuple

from config.data_versions import refusal
from controller.runtime.plan import Problem
from kube.resource import JsonObject

DEFAULT = "8.4"
LABEL = "app.kubernetes.io/version"


class MysqlVersions(NamedTuple):
    """The version to run, the version of the data, and the problem of the requested version."""

    server: str
    data: str | None
    wrong: Problem | None

    @property
    def labels(self) -> dict[str, str]:
        """The labels that record the version on a claim."""
        return {LABEL: self.data} if self.data else {}


def versions(
    requested: str | None,
    stateful_set: JsonObject | None,
    claims: Iterable[JsonObject],
    *,
    is_ready: bool,
) -> MysqlVersions:
    """Compare the requested version with that of the existing data.

    An unset version keeps the existing one.
    """
    runs = _of(stateful_set) if stateful_set else None
    data = runs if is_ready else next(filter(None, map(_of, claims)), None)
    version = requested or data or runs or DEFAULT
    if data and (refused := refusal("mysql", version, data)):
        return MysqlVersions(
            data, data, Problem(f"spec.database.version: {version}; {refused}", "VersionChanged")
        )
    return MysqlVersions(version, data, None)


def _of(object: JsonObject) -> str | None:
    """Return the version in the label of a StatefulSet or a claim.

    The image's name may not contain it.
    """
    labels: JsonObject = object["metadata"].get("labels", {})
    return labels.get(LABEL)
