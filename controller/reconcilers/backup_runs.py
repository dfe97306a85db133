"""The results of a Backup's Jobs, for its status.

They stay in the status after Jobs and pods are deleted.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

import orjson

from config.api.backup import Backup, BackupStatus
from config.api.meta import Condition
from controller.reconcilers.backup_cronjob import CONTAINER
from controller.runtime.plan import Problem
from kube.resource import JsonObject

BACKED_UP = "BackedUp"
RESTORE = "restore.sh"
# Reasons of a waiting container that does not start without a change.
STUCK = {"CreateContainerConfigError", "ImagePullBackOff", "InvalidImageName"}


class Run(NamedTuple):
    """One backup run: a Job and its result."""

    job: str
    state: Literal["Running", "Failing", "Failed", "Succeeded"]
    ended: datetime | None = None
    backup: str | None = None
    size: int | None = None
    message: str = ""
    """The pod's termination message; empty once the pod is deleted."""
    otherwise: str = ""
    """The Job's own message, where the pod has none."""


def runs(
    cronjob: JsonObject | None,
    jobs: Iterable[JsonObject],
    pods: Sequence[JsonObject],
    obstacles: Mapping[str, Problem],
) -> list[Run]:
    """Return the backup runs of a CronJob, oldest first; restore Jobs are not included.

    `obstacles` has the reason why a Job, by its uid, has no running pod.
    """
    return [
        run(
            job,
            [pod for pod in pods if controller_uid(pod) == job["metadata"]["uid"]],
            obstacles.get(job["metadata"]["uid"]),
        )
        for job in jobs_of(cronjob, jobs)
    ]


def jobs_of(cronjob: JsonObject | None, jobs: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the backup Jobs of a CronJob, oldest first."""
    if cronjob is None:
        return []
    backups = [
        job
        for job in jobs
        if controller_uid(job) == cronjob["metadata"]["uid"] and not _restores(job)
    ]
    return sorted(
        backups,
        key=lambda job: (job["metadata"]["creationTimestamp"], job["metadata"]["name"]),
    )


def without_a_pod(jobs: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the unfinished Jobs that no pod runs for, whose pods and events say why."""
    return [job for job in jobs if not _ends(job) and not job.get("status", {}).get("ready")]


def run(job: JsonObject, pods: Sequence[JsonObject], obstacle: Problem | None = None) -> Run:
    """Return the result of one Job, given its pods."""
    name, status, ended = job["metadata"]["name"], job.get("status", {}), _ends(job)
    ends = [each for pod in pods for each in terminations(pod)]
    if "Complete" in ended:
        moment = datetime.fromisoformat(
            status.get("completionTime") or ended["Complete"]["lastTransitionTime"]
        )
        report = next(filter(None, (_report(each) for each in ends if each["exitCode"] == 0)), None)
        if report is None:
            return Run(name, "Succeeded", moment, otherwise="succeeded")
        backup, size = report
        return Run(name, "Succeeded", moment, backup, size, f"backup {backup}, {size} bytes")
    failures = [_last_line(each) for each in ends if each["exitCode"] != 0]
    if "Failed" in ended:
        moment = datetime.fromisoformat(ended["Failed"]["lastTransitionTime"])
        return Run(
            name,
            "Failed",
            moment,
            message="".join(failures[-1:]),
            otherwise=ended["Failed"].get("message", ""),
        )
    failures += [each for pod in pods for each in obstacles(pod)]
    if obstacle is not None:
        failures.append(obstacle.message)
    return Run(name, "Failing", message=failures[-1]) if failures else Run(name, "Running")


def status(
    backup: Backup, runs: Sequence[Run], next_time: datetime | None, now: datetime
) -> BackupStatus:
    """Return the status: the last backup, the next one, and the condition BackedUp."""
    before = backup.status
    time, size, name = before.last_successful_time, before.last_size, before.last_backup
    for run in runs:
        if run.state == "Succeeded" and run.ended and (time is None or run.ended >= time):
            if run.ended != time or run.backup:
                size, name = run.size, run.backup
            time = run.ended
    return BackupStatus(
        last_successful_time=time,
        last_size=size,
        last_backup=name,
        next_time=next_time,
        conditions=[backed_up(before.conditions, runs, now)],
    )


def backed_up(before: Sequence[Condition] | None, runs: Sequence[Run], now: datetime) -> Condition:
    """Return the condition BackedUp of the latest run that has a result.

    A first attempt that still runs has none. `before` are the earlier conditions.
    """
    old = next((each for each in before or () if each.type == BACKED_UP), None)
    if old and runs and runs[-1].state == "Running" and is_of(runs[-1], old):
        return old  # its attempts failed; the pod with the reason is being deleted
    ended = [run for run in runs if run.state != "Running"]
    if not ended and old:
        return old
    latest = ended[-1] if ended else None
    outcome: Literal["True", "False"] = (
        "True" if latest and latest.state == "Succeeded" else "False"
    )
    message = "no backup was made yet"
    if latest and old and not latest.message and old.status == outcome and is_of(latest, old):
        message = old.message
    elif latest:
        message = f"Job {latest.job}: {latest.message or latest.otherwise}"
    reason = latest.state if latest else "NoneYet"
    return Condition(
        type=BACKED_UP,
        status=outcome,
        reason=reason,
        message=message[:1024],
        last_transition_time=now,
    )


def is_of(run: Run, condition: Condition) -> bool:
    """Return whether a condition describes this run."""
    return condition.message.startswith(f"Job {run.job}: ")


def terminations(pod: JsonObject) -> Iterator[JsonObject]:
    """Yield the terminated states of the backup's container: the previous, then the current."""
    for container in containers(pod):
        states = container.get("lastState", {}), container.get("state", {})
        yield from (state["terminated"] for state in states if "terminated" in state)


def obstacles(pod: JsonObject) -> Iterator[str]:
    """Yield why the backup's container cannot start: its image, or a missing key of a Secret."""
    for container in containers(pod):
        waiting = container.get("state", {}).get("waiting", {})
        if waiting.get("reason") in STUCK:
            yield f"{waiting['reason']}: {waiting.get('message', '')}"


def containers(pod: JsonObject) -> Iterator[JsonObject]:
    """Yield the status of the backup's container, once it has one."""
    yield from (
        each
        for each in pod.get("status", {}).get("containerStatuses", ())
        if each["name"] == CONTAINER
    )


def _restores(job: JsonObject) -> bool:
    """Return whether a Job restores, with another command than the CronJob's."""
    container = job["spec"]["template"]["spec"]["containers"][0]
    return any(part.endswith(RESTORE) for part in container.get("command") or ())


def controller_uid(object: JsonObject) -> str | None:
    """Return the uid of an object's controller owner."""
    owners = object["metadata"].get("ownerReferences", ())
    return next((each["uid"] for each in owners if each.get("controller")), None)


def _ends(job: JsonObject) -> dict[str, JsonObject]:
    """Return the conditions of a finished Job, by type."""
    conditions: Sequence[JsonObject] = job.get("status", {}).get("conditions") or ()
    ends = ("Complete", "Failed")
    return {
        each["type"]: each
        for each in conditions
        if each["type"] in ends and each["status"] == "True"
    }


def _report(terminated: JsonObject) -> tuple[str, int] | None:
    """Parse the termination message of /backup.sh; None if it is not a success."""
    try:
        report = orjson.loads(terminated.get("message") or "null")
    except orjson.JSONDecodeError:
        return None
    match report:
        case {"backup": str(name), "bytes": int(size)}:
            return name, size
    return None


def _last_line(terminated: JsonObject) -> str:
    lines = str(terminated.get("message") or "").strip().splitlines()
    return (
        lines[-1]
        if lines
        else f"{terminated.get('reason', 'Error')}, exit code {terminated['exitCode']}"
    )
