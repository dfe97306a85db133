"""Constraints on single fields of Gatewright's own kinds: names that children get, sizes, schedules."""

import re

from config.cron import CronError, check
from webhook.engine import Fields, Request, Violations
from webhook.engine.violation import shown

OBJECT_NAME = re.compile(r"(?!.{254})[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def too_long(request: Request, limit: int, rule: str) -> Violations:
    """Yield a violation where the object's name has more characters than `limit`."""
    name = request.string("metadata.name") or ""
    if len(name) > limit:
        found = f"{shown(name)} has {len(name)} characters"
        yield request.violation("metadata.name", name, rule, "choose a shorter name", found=found)


def no_dns_label(request: Request, rule: str, limit: int | None = None) -> Violations:
    """Yield a violation where the object's name cannot be a Service's; its length counts with a `limit`."""
    name = request.string("metadata.name") or ""
    is_long = limit is not None and len(name) > limit
    if name and (is_long or not DNS_LABEL.fullmatch(name)):
        fix = "use lower-case letters, digits and '-', beginning with a letter"
        found = f"{shown(name)} has {len(name)} characters" if is_long else None
        yield request.violation("metadata.name", name, rule, fix, found=found)


def of_object_name(record: Fields, field: str) -> Violations:
    """Yield a violation where a field names an object that cannot be."""
    name = record.string(field)
    if name and not OBJECT_NAME.fullmatch(name):
        yield record.violation(
            field, name, "no object can have that name", "use lower-case letters, digits, '-' and '.'"
        )


def of_storage(record: Fields, field: str) -> Violations:
    """Yield a violation where the size of a volume is none."""
    size = record.quantity(field)
    if size is not None and size.millis <= 0:
        yield record.violation(field, size.text, "a volume has a size", "write 1Gi or more", found=size.text)


def of_schedule(record: Fields, field: str) -> Violations:
    """Yield a violation where a CronJob cannot have a schedule; what is unset has a default."""
    schedule = record.string(field)
    try:
        if schedule is not None:
            check(schedule)
    except CronError as error:
        fix = 'write five fields in UTC, such as "0 2 * * *", or a word such as "@daily"'
        yield record.violation(field, schedule, f"no cron schedule: {error}", fix)
