"""The reports of violations that a controller writes."""

from tests.controlplane.plane import ControlPlane
from tests.waiting import until

REPORTS = "/apis/openreports.io/v1alpha1/reports"


def until_reported(plane: ControlPlane, wanted: dict[str, list[str]]) -> None:
    """Wait until the reports have these messages, by the names of the objects."""

    def reported() -> dict[str, list[str]]:
        return {
            each["scope"]["name"]: [result["message"] for result in each["results"]]
            for each in plane.api.get(REPORTS)["items"]
        }

    until(lambda: reported() == wanted, problem=reported)
