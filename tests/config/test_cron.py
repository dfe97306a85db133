"""Schedules as CronJobs parse them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from config.cron import CronError, check, upcoming
from tests.controlplane.plane import ControlPlane

NOW = datetime(2026, 11, 21, 17, 0, 30, tzinfo=UTC)  # a Saturday

NEXT = {
    "0 2 * * *": "2026-11-22 02:00",
    "* * * * *": "2026-11-21 17:01",
    "*/15 * * * *": "2026-11-21 17:15",
    "5/20 * * * *": "2026-11-21 17:05",
    "@hourly": "2026-11-21 18:00",
    "@daily": "2026-11-22 00:00",
    "@midnight": "2026-11-22 00:00",
    "@weekly": "2026-11-22 00:00",
    "@monthly": "2026-12-01 00:00",
    "@yearly": "2027-01-01 00:00",
    "@annually": "2027-01-01 00:00",
    "0 0 ? * MON-fri": "2026-11-23 00:00",
    "30 4 1,15 * *": "2026-12-01 04:30",
    "0 0 29 2 *": "2028-02-29 00:00",
    "0 0 1 * 1": "2026-11-23 00:00",  # the first or a Monday
    "0 0 */2 * 1": "2026-11-23 00:00",  # an odd day or a Monday
    "0 0 * * 4/2": "2026-11-26 00:00",  # Thursday and Saturday, never Sunday
    "0 0 1 JAN-MAR/2 *": "2027-01-01 00:00",
}
WRONG = {
    "": "it has 0 fields instead of 5: minute, hour, day of month, month, day of week",
    "@never": "it has 1 field instead of 5: minute, hour, day of month, month, day of week",
    "0 2 * *": "it has 4 fields instead of 5: minute, hour, day of month, month, day of week",
    "0 0 2 * * *": "it has 6 fields instead of 5: minute, hour, day of month, month, day of week",
    "CRON_TZ=UTC 0 2 * * *": "a time zone (TZ=, CRON_TZ=) is not supported",
    "TZ=Europe/Paris 0 2 * * *": "a time zone (TZ=, CRON_TZ=) is not supported",
    "@every 1h": "an interval (@every) is not supported",
    "60 * * * *": "wrong minute",
    "0 24 * * *": "wrong hour",
    "0 0 0 * *": "wrong day of month",
    "0 0 * 13 *": "wrong month",
    "0 0 * * 7": 'wrong day of week "7": Sunday is 0',
    "0 0 L * *": 'wrong day of month "L"',
    "0 0 * * 1#2": 'wrong day of week "1#2"',
    "0 0 *-5 * *": 'wrong day of month "*-5"',
    "*/0 * * * *": "wrong minute",
    "5-1 * * * *": "wrong minute",
    ", * * * *": 'wrong minute ""',
    "0 0 * FOO *": "wrong month",
    "0 0 30 2 *": "wrong day of month",
}
# Only CronJobs take these: intervals, which have no time of day, days that never come, oversights of their parser.
STRICTER = ("@every 1h", "@every 0s", "0 2 31 2 *", "0 2 30 2 *", "1,2,,3 * * * *", "+1 2 * * *")
OTHERS = (
    "@reboot",
    "@Daily",
    "0 2 * * 0-7",
    "0 2 * * MON#1",
    "0 2 1W * *",
    "*/61 * * * *",
    "-1 * * * *",
    " 0 2 * * *",
    "0  2 * * * ",
    "0\t2 * * *",
    "0/15 * * * *",
    "*/15,*/20 * * * *",
    "00 02 * * *",
    "0 2 * * *#",
    "0 2 * * Sunday",
    "0 2 * * mon,fri",
    "0 2 * * 5-1",
    "*/5/2 * * * *",
    "1.5 * * * *",
    "\u0660 2 * * *",
    "0 2 * * 1-",
    "0 2 * * *\n",
)


@pytest.mark.controlplane
def test_kubernetes_takes_every_valid_schedule(control_plane: ControlPlane) -> None:
    """A schedule that is valid here is valid for a CronJob, and the reverse but for the stricter ones."""
    api = control_plane.api
    pod = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}
    found = {}
    for schedule in (*NEXT, *WRONG, *OTHERS, *STRICTER):
        spec = {"schedule": schedule, "jobTemplate": {"spec": {"template": {"spec": pod}}}}
        cron_job = {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": "a"},
            "spec": spec,
        }
        path = "/apis/batch/v1/namespaces/default/cronjobs?dryRun=All"
        code, answer = api.request("POST", path, cron_job)
        assert code in (201, 422), answer
        found[schedule] = (code == 201, is_valid(schedule))
    stricter = {
        schedule for schedule, (by_kubernetes, here) in found.items() if by_kubernetes > here
    }
    assert [each for each, (by_kubernetes, here) in found.items() if here > by_kubernetes] == []
    assert stricter == {*STRICTER, ", * * * *", "0 0 *-5 * *", "0 0 30 2 *"}


def is_valid(schedule: str) -> bool:
    """Return whether Gatewright accepts a schedule."""
    try:
        check(schedule)
    except CronError:
        return False
    return True


@pytest.mark.parametrize(("schedule", "moment"), NEXT.items())
def test_the_next_time_of_a_schedule(schedule: str, moment: str) -> None:
    """It is in UTC, strictly after the given time."""
    expected = datetime.fromisoformat(moment).replace(tzinfo=UTC)
    assert upcoming(schedule, NOW) == expected
    assert upcoming(schedule, expected - timedelta(seconds=1)) == expected
    assert upcoming(schedule, expected) > expected


@pytest.mark.parametrize(("schedule", "message"), WRONG.items())
def test_an_invalid_schedule_is_an_error(schedule: str, message: str) -> None:
    """The message has the reason in the user's terms."""
    with pytest.raises(CronError) as error:
        check(schedule)
    assert str(error.value) == message


def test_times_in_other_zones_are_converted() -> None:
    """The schedule is in UTC, whatever the zone of the clock."""
    there = NOW.astimezone(timezone(timedelta(hours=9)))
    assert upcoming("0 2 * * *", there) == datetime(2026, 11, 22, 2, tzinfo=UTC)
