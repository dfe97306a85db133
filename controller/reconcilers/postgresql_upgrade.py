"""The upgrade of a PostgreSQL to another major version in place, and the way back.

Two Jobs run with the later version's image. The first tries the upgrade with a copy of the schema
while the database runs. Then the instances stop, the highest number first, and the second makes
`<data>-<version>` on the volume of the first instance, beside the data, which it only reads. That
instance starts with the later version, takes the new data, and records the version beside
Patroni's state (see `store.py` of the scripts): from then on the upgrade is done, and the others
copy its data. Until then, a failure leaves all as it was.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, get_args

from config.api.meta import Condition
from config.api.postgresql import PostgreSQL, PostgresqlVersion
from config.data_versions import is_later
from controller.reconcilers import postgresql_patroni as patroni
from controller.reconcilers import postgresql_upgrade_job as jobs
from controller.reconcilers.backup_runs import Run
from controller.reconcilers.claims import Volumes
from controller.reconcilers.postgresql_pods import VERSION
from controller.reconcilers.resources import STATEFUL_SET
from controller.runtime.plan import CreateOnly, Observed, Problem, Write

UPGRADED = "Upgraded"  # the condition


class Upgrade(NamedTuple):
    """What a database runs while its version changes, and afterwards."""

    version: str
    """The major version that the instances run."""
    replicas: int
    writes: Sequence[Write] = ()
    reason: str = ""
    """Reason of the condition; empty if there is no upgrade to report."""
    message: str = ""
    is_done: bool = True

    @property
    def note(self) -> str | Problem:
        """Why the condition Ready is not True."""
        if self.is_done:
            return ""
        failed = self.reason.endswith("Failed")
        return Problem(self.message, self.reason) if failed else self.message

    @property
    def stopped(self) -> str:
        """Why there is no primary; empty unless the instances are stopped."""
        return self.message if self.replicas == 0 else ""

    def conditions(self, now: datetime) -> list[Condition]:
        """Return the condition `Upgraded`, while there is something to report."""
        if not self.reason:
            return []
        return [Condition.of(UPGRADED, self.is_done, self.reason, now, self.message[:1024])]


def data_version(database: PostgreSQL, observed: Observed, stored: Volumes) -> str:
    """Return the version of the data: what an upgrade recorded, or else what its claims say."""
    recorded = _read_version(database, observed, patroni.VERSION)
    labelled = stored.template["metadata"]["labels"].get(VERSION, database.spec.version)
    return recorded or str(labelled)


def previous_version(database: PostgreSQL, observed: Observed) -> str | None:
    """Return the version before the last upgrade, whose data is kept."""
    return _read_version(database, observed, patroni.PREVIOUS_VERSION)


def _read_version(database: PostgreSQL, observed: Observed, key: str) -> str | None:
    """Return a version in Patroni's state, which a superuser of the database may write, too."""
    stored = patroni.find_endpoints(database, observed, patroni.stores(database)[0])
    value = ((stored or {"metadata": {}})["metadata"].get("annotations") or {}).get(key)
    return value if value in get_args(PostgresqlVersion) else None


def is_allowed(database: PostgreSQL, data: str, previous: str | None) -> bool:
    """Return whether the spec's version may become that of the data."""
    version = database.spec.version
    if is_later(version, data):
        return database.spec.major_upgrade != "Refused"
    return version in (data, previous)


def upgrade_of(database: PostgreSQL, observed: Observed, stored: Volumes) -> Upgrade:
    """Return what the database runs now, on its way to the version of its spec."""
    data, previous = data_version(database, observed, stored), previous_version(database, observed)
    version, replicas = database.spec.version, database.spec.replicas
    if version == data or not is_allowed(database, data, previous):
        return _keep_version(database, observed, data, previous)
    if version == previous:
        back = f"going back to PostgreSQL {version}"
        return _switch(database, observed, data, [], "GoingBack", back)
    check = jobs.job(database, observed, data, "check")
    upgrade = jobs.job(database, observed, data, "upgrade")
    writes: list[Write] = [*jobs.delete_stale(database, observed, [check, upgrade])]
    if not _is_running(database, observed, version):
        writes.append(CreateOnly(check, origin=jobs.origin_of(database)))
        tried = jobs.result_of(database, observed, check)
        if tried is None or tried.state in ("Running", "Failing"):
            checking = f"trying the upgrade to PostgreSQL {version} with a copy of the schema"
            note = f"{checking}: {tried.message}" if tried and tried.message else checking
            return Upgrade(data, replicas, writes, "Checking", note, is_done=False)
        if tried.state == "Failed":
            return _report_failure(Upgrade(data, replicas, writes, "CheckFailed"), tried, data)
        made = jobs.result_of(database, observed, upgrade)
        if made is not None and made.state == "Failed":
            writes.append(CreateOnly(upgrade, origin=jobs.origin_of(database)))
            return _report_failure(Upgrade(data, replicas, writes, "UpgradeFailed"), made, data)
        if not _is_stopped(database, observed):
            fewer = _fewer(database, observed)
            note = f"stopping PostgreSQL {data}, the first instance last: {fewer} left"
            return Upgrade(data, fewer, writes, "Stopping", note, is_done=False)
        writes.append(CreateOnly(upgrade, origin=jobs.origin_of(database)))
        if made is None or made.state != "Succeeded":
            note = f"upgrading the data from PostgreSQL {data} to {version}"
            if made and made.message:
                note = f"{note}: {made.message}"
            return Upgrade(data, 0, writes, "Upgrading", note, is_done=False)
    starting = (
        f"{database.name}-0 starts with PostgreSQL {version}; if it cannot, correct the cause, or "
        f"set spec.version back to {data}"
    )
    return _switch(database, observed, data, writes, "Starting", starting)


def _keep_version(
    database: PostgreSQL, observed: Observed, data: str, previous: str | None
) -> Upgrade:
    """Return what runs while no version changes: all instances, with the version of the data."""
    writes, replicas = jobs.delete_stale(database, observed, []), database.spec.replicas
    if previous is None:
        return Upgrade(data, replicas, writes)
    if not _all_ready(database, observed, replicas) and not _was_done(database):
        message = (
            f"PostgreSQL {data} runs, and its standbys copy the primary; the condition Ready has "
            "the reason of one that cannot"
        )
        return Upgrade(data, replicas, writes, "CloningStandbys", message)
    message = (
        f"from PostgreSQL {previous} to {data}; the data of {previous} is kept: set spec.version "
        f"to {previous} to go back, which loses later writes, or spec.majorUpgrade to Final "
        "to give it up"
    )
    return Upgrade(data, replicas, writes, "Reversible", message)


def _was_done(database: PostgreSQL) -> bool:
    return any(
        condition.type == UPGRADED and condition.reason == "Reversible"
        for condition in database.status.conditions or ()
    )


def is_final(database: PostgreSQL, observed: Observed) -> bool:
    """Return whether the way back is given up: all instances run the later version."""
    is_kept = previous_version(database, observed) is not None
    is_asked = database.spec.major_upgrade == "Final"
    return is_kept and is_asked and _all_ready(database, observed, database.spec.replicas)


def _switch(
    database: PostgreSQL,
    observed: Observed,
    data: str,
    writes: Sequence[Write],
    reason: str,
    message: str,
) -> Upgrade:
    """Return the stop of all instances, and the start of the first one with the other version."""
    version = database.spec.version
    if _is_running(database, observed, version) or _is_stopped(database, observed):
        return Upgrade(version, 1, writes, reason, message, is_done=False)
    return Upgrade(data, 0, writes, reason, f"{message}: stopping {data}", is_done=False)


def _report_failure(planned: Upgrade, attempt: Run, data: str) -> Upgrade:
    message = (
        f"{attempt.message or attempt.otherwise}: PostgreSQL {data} runs on. Correct the cause and "
        f"delete job/{attempt.job} to try again, or set spec.version back to {data}"
    )
    return planned._replace(message=message, is_done=False)


def _fewer(database: PostgreSQL, observed: Observed) -> int:
    """Return how many instances to run next, one fewer once the primary can hand over."""
    child = observed.child(STATEFUL_SET, database.name) or {"spec": {}}
    count = int(child["spec"].get("replicas", 0))
    primary, standbys = patroni.leader(database, observed), patroni.standbys_of(database, observed)
    if count == 0:
        return 0
    may_stop = primary == f"{database.name}-0" if count == 1 else bool(standbys)
    return count - 1 if may_stop and _all_ready(database, observed, count) else count


def _all_ready(database: PostgreSQL, observed: Observed, count: int) -> bool:
    """Return whether exactly `count` instances exist and are ready."""
    child = observed.child(STATEFUL_SET, database.name) or {"metadata": {}}
    status = child.get("status", {})
    return bool(
        status.get("observedGeneration") == child["metadata"].get("generation")
        and status.get("replicas", 0) == status.get("readyReplicas", 0) == count
    )


def _is_stopped(database: PostgreSQL, observed: Observed) -> bool:
    child = observed.child(STATEFUL_SET, database.name)
    if child is None:
        return False
    return child["spec"].get("replicas") == 0 and _all_ready(database, observed, 0)


def _is_running(database: PostgreSQL, observed: Observed, version: str) -> bool:
    """Return whether the StatefulSet is of this version."""
    child = observed.child(STATEFUL_SET, database.name) or {"metadata": {}}
    return bool((child["metadata"].get("labels") or {}).get(VERSION) == version)
