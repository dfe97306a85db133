"""Validates CronJob schedules."""

from config.cron import CronError, check
from webhook.engine import Violation, Violations
from webhook.engine.violation import shown


def of_schedule(path: str, schedule: str | None) -> Violations:
    """Yield a violation where a schedule is none; what is unset has a default."""
    try:
        if schedule is not None:
            check(schedule)
    except CronError as error:
        fix = 'write five fields in UTC, such as "0 2 * * *", or a word such as "@daily"'
        yield Violation(path, found=shown(schedule), rule=f"no cron schedule: {error}", fix=fix)
