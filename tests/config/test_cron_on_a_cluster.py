"""Schedules as the API server accepts them in a CronJob."""

import pytest

from tests.config.test_cron import NEXT, WRONG
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.controlplane

STRICTER = {
    "@every 1h",  # no cron schedule
    "0 0 30 2 *",  # never comes round
    ", * * * *",  # nor does this: an empty list
    "0 0 *-5 * *",  # the same as `*`, and surely not meant
}


def test_the_api_server_agrees(control_plane: ControlPlane, namespace: str) -> None:
    """It accepts and rejects the same schedules, with a few listed exceptions."""
    api = control_plane.api
    path = f"/apis/batch/v1/namespaces/{namespace}/cronjobs?dryRun=All"
    pod = {"restartPolicy": "Never", "containers": [{"name": "app", "image": "app"}]}

    def is_taken(schedule: str) -> bool:
        spec = {"schedule": schedule, "jobTemplate": {"spec": {"template": {"spec": pod}}}}
        code, answer = api.request("POST", path, {"metadata": {"name": "job"}, "spec": spec})
        assert code in {201, 422}, answer
        return bool(code == 201)

    assert {schedule for schedule in (*NEXT, *WRONG) if is_taken(schedule)} == {*NEXT, *STRICTER}
