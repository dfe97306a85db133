"""The status of a Backup, from the results of its Jobs.

It stays after Jobs and pods are deleted.
"""

from collections.abc import Sequence
from datetime import datetime

from config.api.backup import Backup, BackupStatus
from controller.reconcilers.backup_runs import Run, outcome_of

RESTORABLE = "Restorable"
NONE_YET = "no backup was restored yet"
UNKNOWN_SERVER = "the next backup tells which server's image a drill needs; or set spec.drill.image"


def status_of(
    backup: Backup,
    runs: Sequence[Run],
    drills: Sequence[Run],
    next_time: datetime | None,
    now: datetime,
) -> BackupStatus:
    """Return the status: the last backup and the last drill, the next backup, the conditions."""
    before = backup.status
    time, size, name = before.last_successful_time, before.last_size, before.last_backup
    server = before.server
    for run in runs:
        if run.state == "Succeeded" and run.ended and (time is None or run.ended >= time):
            if run.report:
                size, name = run.report.size, run.report.backup
                server = run.report.server or server
            elif run.ended != time:
                size = name = None
            time = run.ended
    status = BackupStatus(
        last_successful_time=time,
        last_size=size,
        last_backup=name,
        server=server,
        next_time=next_time,
        conditions=[outcome_of(runs, before.conditions, now)],
    )
    return status if backup.spec.drill is None else _with_drills(backup, status, drills, now)


def _with_drills(
    backup: Backup, status: BackupStatus, drills: Sequence[Run], now: datetime
) -> BackupStatus:
    """Return the status with the last good drill and the condition Restorable."""
    time, name = backup.status.last_verified_time, backup.status.last_verified_backup
    for drill in drills:
        if drill.state == "Succeeded" and drill.ended and (time is None or drill.ended >= time):
            if drill.report or drill.ended != time:
                name = drill.report.backup if drill.report else None
            time = drill.ended
    none_yet = NONE_YET if server_of(backup, status) else f"{NONE_YET}: {UNKNOWN_SERVER}"
    condition = outcome_of(drills, backup.status.conditions, now, RESTORABLE, none_yet)
    return status.model_copy(
        update={
            "last_verified_time": time,
            "last_verified_backup": name,
            "conditions": [*(status.conditions or ()), condition],
        }
    )


def server_of(backup: Backup, status: BackupStatus) -> str | None:
    """Return the image that a drill runs, given or known from the last backup."""
    drill = backup.spec.drill
    return None if drill is None else drill.image or status.server
