"""Rules for fields of Gatewright's own kinds that the API server or the controller rejects in a child.

The API server validates a custom resource against its schema only. Without these rules it would admit an object whose
children it then rejects: names, sizes, schedules, and contradictory settings of containers.
"""

import re

from config.cron import CronError, check
from webhook.engine import Fields, Request, Violations
from webhook.engine.fields import entry
from webhook.engine.violation import shown

OBJECT_NAME = re.compile(r"(?!.{254})[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
SYS_ADMIN = "CAP_SYS_ADMIN"  # the only spelling that the API server rejects
SOURCES = ("secretKeyRef", "configMapKeyRef")


def too_long(request: Request, limit: int, rule: str) -> Violations:
    """Yield a violation where the object's name has more characters than `limit`."""
    name = request.string("metadata.name") or ""
    if len(name) > limit:
        found = f"{shown(name)} has {len(name)} characters"
        yield request.violation("metadata.name", name, rule, "choose a shorter name", found=found)


def no_dns_label(request: Request, rule: str) -> Violations:
    """Yield a violation where the object's name, however long, cannot be a Service's."""
    name = request.string("metadata.name")
    if name and not DNS_LABEL.fullmatch(name):
        fix = "use lower-case letters, digits and '-', beginning with a letter"
        yield request.violation("metadata.name", name, rule, fix)


def of_object_name(record: Fields, field: str) -> Violations:
    """Yield a violation where a field is not a valid object name."""
    name = record.string(field)
    if name and not OBJECT_NAME.fullmatch(name):
        yield record.violation(field, name, "not a valid object name", "use lower-case letters, digits, '-' and '.'")


def of_storage(record: Fields, field: str) -> Violations:
    """Yield a violation where the size of a volume is not positive."""
    size = record.quantity(field)
    if size is not None and size.millis <= 0:
        rule, fix = "the size of a volume must be positive", "write 1Gi or more"
        yield record.violation(field, size.text, rule, fix, found=size.text)


def of_schedule(record: Fields, field: str) -> Violations:
    """Yield a violation where a schedule is not valid for a CronJob; an unset one has a default."""
    schedule = record.string(field)
    try:
        if schedule is not None:
            check(schedule)
    except CronError as error:
        fix = 'write five fields in UTC, such as "0 2 * * *", or a word such as "@daily"'
        yield record.violation(field, schedule, f"not a valid cron schedule: {error}", fix)


def of_image(container: Fields) -> Violations:
    """Yield a violation where an image begins or ends with whitespace."""
    image = container.string("image")
    if image is not None and image != image.strip():
        yield container.violation("image", image, rule="must not begin or end with whitespace", fix="remove it")


def of_resources(record: Fields) -> Violations:
    """Yield a violation for each amount that is negative, and each request above its limit."""
    limits = record.quantities("resources.limits")
    for part, amounts in (("requests", record.quantities("resources.requests")), ("limits", limits)):
        for name, amount in amounts.items():
            field, limit = entry(f"resources.{part}", name), limits.get(name, amount)
            if amount.millis < 0:
                rule, fix = "an amount cannot be negative", "write 0 or more"
                yield record.violation(field, amount.text, rule, fix, found=amount.text)
            if amount.millis > limit.millis:
                found = f"{amount}, and the limit is {limit}"
                rule = "a request must not exceed its limit"
                yield record.violation(field, found, rule, "lower the request, or raise the limit", found=found)


def of_security_context(container: Fields, *, may_escalate: bool = True) -> Violations:
    """Yield a violation for rights that imply a denied privilege escalation; `may_escalate` is its default."""
    context = container.fields("securityContext")
    allowed = context.boolean("allowPrivilegeEscalation")
    if may_escalate if allowed is None else allowed:
        return
    rule = "it implies privilege escalation, and allowPrivilegeEscalation is false"
    fix = "remove it, or set allowPrivilegeEscalation to true"
    if context.boolean("privileged"):
        yield context.violation("privileged", True, rule=rule, fix=fix)
    if SYS_ADMIN in context.strings("capabilities.add"):
        yield context.violation("capabilities.add", SYS_ADMIN, rule, fix, found=SYS_ADMIN)


def of_variables(container: Fields) -> Violations:
    """Yield a violation for each environment variable with an invalid name, or without exactly one value."""
    for each in container.each("env"):
        name = each.string("name") or ""
        if "=" in name or not (name.isascii() and name.isprintable()):
            rule = "a variable's name must have printable ASCII characters other than '='"
            yield each.violation("name", name, rule=rule, fix="choose another")
        if not each.is_set("valueFrom"):
            continue
        sources = [source for source in SOURCES if each.is_set(f"valueFrom.{source}")]
        if each.string("value"):
            found, rule = "valueFrom is set too", "a variable must have exactly one value"
            yield each.violation("value", None, rule, "remove one of them", found=found)
        if len(sources) != 1:
            found = " and ".join(sources) or "no source"
            rule, fix = "a value must come from one key of a Secret or of a ConfigMap", f"set {' or '.join(SOURCES)}"
            yield each.violation("valueFrom", found, rule, fix, found=found)
        for field in (f"valueFrom.{source}.key" for source in sources):
            if not each.string(field):
                yield each.violation(field, None, "a key is required", "name it", found="missing")
