"""The results of the Jobs that make backups and that try them, for the status.

They stay in the status after Jobs and pods are deleted.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

import orjson

from config.api.meta import Condition
from controller.reconcilers.indexes import keep_metadata
from controller.runtime.plan import Problem
from kube.resource import JsonObject

BACKED_UP = "BackedUp"
CONTAINERS = ("backup", "drill", "upgrade")
RESTORE = "restore.sh"
# What /backup.sh reports about the server: the name of its image and its version.
SERVER = re.compile(r"(postgres|mysql|mariadb):[0-9]+(\.[0-9]+)?")
# Reasons of a waiting container that does not start without a change.
STUCK = {"CreateContainerConfigError", "ImagePullBackOff", "InvalidImageName"}


class PodReport(NamedTuple):
    """What the pod of a successful run reported."""

    message: str
    backup: str
    size: int | None = None
    server: str | None = None


class Run(NamedTuple):
    """One run of a backup or of a drill: a Job and its result."""

    job: str
    state: Literal["Running", "Failing", "Failed", "Succeeded"]
    ended: datetime | None = None
    report: PodReport | None = None
    message: str = ""
    """The pod's termination message; empty once the pod is deleted."""
    otherwise: str = ""
    """The Job's own message, where the pod has none."""


def parse_backup(word: JsonObject) -> PodReport | None:
    """Return the report of /backup.sh."""
    match word:
        case {"backup": str(name), "bytes": int(size)}:
            server = word.get("server")
            is_server = isinstance(server, str) and SERVER.fullmatch(server)
            return PodReport(
                f"backup {name}, {size} bytes", name, size, server if is_server else None
            )
    return None


def parse_drill(word: JsonObject) -> PodReport | None:
    """Return the report of /drill.sh."""
    match word:
        case {"verified": str(name), "databases": int(databases), "tables": int(), "rows": int()}:
            counts = f"{databases} databases, {word['tables']} tables, {word['rows']} rows"
            return PodReport(f"backup {name} was restored: {counts}", name)
    return None


def parse_restore(word: JsonObject) -> PodReport | None:
    """Return the report of /restore.sh."""
    name = word.get("restored")
    return PodReport(f"backup {name} was restored", name) if isinstance(name, str) else None


def runs(
    jobs: Iterable[JsonObject],
    pods: Sequence[JsonObject],
    obstacles: Mapping[str, Problem],
    parse: Callable[[JsonObject], PodReport | None],
) -> list[Run]:
    """Return the runs of a CronJob's Jobs (see `jobs_of`).

    `obstacles` has the reason why a Job, by its uid, has no running pod; `parse` reads the
    termination message of a successful pod.
    """
    return [
        run(
            job,
            [pod for pod in pods if controller_uid(pod) == job["metadata"]["uid"]],
            obstacles.get(job["metadata"]["uid"]),
            parse,
        )
        for job in jobs
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


def run(
    job: JsonObject,
    pods: Sequence[JsonObject],
    obstacle: Problem | None,
    parse: Callable[[JsonObject], PodReport | None],
) -> Run:
    """Return the result of one Job, given its pods."""
    name, status, ended = job["metadata"]["name"], job.get("status", {}), _ends(job)
    ends = [each for pod in pods for each in terminations(pod)]
    if "Complete" in ended:
        moment = datetime.fromisoformat(
            status.get("completionTime") or ended["Complete"]["lastTransitionTime"]
        )
        words = (_read(each) for each in ends if each["exitCode"] == 0)
        report = next(filter(None, map(parse, words)), None)
        if report is None:
            return Run(name, "Succeeded", moment, otherwise="succeeded")
        return Run(name, "Succeeded", moment, report, report.message)
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
        failures.append(obstacle.message.removeprefix(f"Job {name}: "))
    return Run(name, "Failing", message=failures[-1]) if failures else Run(name, "Running")


def outcome_of(
    runs: Sequence[Run],
    before: Sequence[Condition] | None,
    now: datetime,
    type: str = BACKED_UP,
    none_yet: str = "no backup was made yet",
) -> Condition:
    """Return the condition `type` of the latest run that has a result.

    A first attempt that still runs has none. `before` are the earlier conditions.
    """
    old = next((each for each in before or () if each.type == type), None)
    if old and runs and runs[-1].state == "Running" and is_of(runs[-1], old):
        return old  # its attempts failed; the pod with the reason is being deleted
    ended = [run for run in runs if run.state != "Running"]
    if not ended and old:
        return old
    latest = ended[-1] if ended else None
    outcome: Literal["True", "False"] = (
        "True" if latest and latest.state == "Succeeded" else "False"
    )
    message = none_yet
    if latest and old and not latest.message and old.status == outcome and is_of(latest, old):
        message = old.message
    elif latest:
        message = f"Job {latest.job}: {latest.message or latest.otherwise}"
    reason = latest.state if latest else "NoneYet"
    return Condition(
        type=type,
        status=outcome,
        reason=reason,
        message=message[:1024],
        last_transition_time=now,
    )


def is_of(run: Run, condition: Condition) -> bool:
    """Return whether a condition describes this run."""
    return condition.message.startswith(f"Job {run.job}: ")


def terminations(pod: JsonObject) -> Iterator[JsonObject]:
    """Yield the terminated states of the run's container: the previous, then the current."""
    for container in containers(pod):
        states = container.get("lastState", {}), container.get("state", {})
        yield from (state["terminated"] for state in states if "terminated" in state)


def obstacles(pod: JsonObject) -> Iterator[str]:
    """Yield why the run's container cannot start: its image, or a missing key of a Secret."""
    for container in containers(pod):
        waiting = container.get("state", {}).get("waiting", {})
        if waiting.get("reason") in STUCK:
            yield f"{waiting['reason']}: {waiting.get('message', '')}"


def containers(pod: JsonObject) -> Iterator[JsonObject]:
    """Yield the status of the run's container, once it has one."""
    yield from (
        container_status
        for container_status in pod.get("status", {}).get("containerStatuses", ())
        if container_status["name"] in CONTAINERS
    )


def keep_job(job: JsonObject) -> JsonObject:
    """Return what plans read of a Job: whose it is, how it ended, and whether it restores."""
    spec, container = job["spec"], {"command": [RESTORE]} if _restores(job) else {}
    return {
        **keep_metadata(job, "creationTimestamp"),
        "spec": {
            "selector": spec.get("selector"),
            "template": {"spec": {"containers": [container]}},
        },
        "status": job.get("status", {}),
    }


def keep_pod(pod: JsonObject) -> JsonObject:
    """Return what plans read of the pod of a run: whose it is, and how its containers ended."""
    return {**keep_metadata(pod), "status": pod.get("status", {})}


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
        condition["type"]: condition
        for condition in conditions
        if condition["type"] in ends and condition["status"] == "True"
    }


def _read(terminated: JsonObject) -> JsonObject:
    """Return the termination message of a script; empty if it is not JSON."""
    try:
        word = orjson.loads(terminated.get("message") or "null")
    except orjson.JSONDecodeError:
        return {}
    return word if isinstance(word, dict) else {}


def _last_line(terminated: JsonObject) -> str:
    lines = str(terminated.get("message") or "").strip().splitlines()
    return (
        lines[-1]
        if lines
        else f"{terminated.get('reason', 'Error')}, exit code {terminated['exitCode']}"
    )
