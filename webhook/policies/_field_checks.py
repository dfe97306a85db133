"""Rules for names and fields of Gatewright's own kinds that the API server rejects in a child.

The API server validates a custom resource against its schema only. Without these rules it would
admit an object whose children it then rejects: names, sizes, schedules, and contradictory settings
of containers. A field has one name, and one rule, in all of these kinds.
"""

import re

from config.api.match import LABEL_KEY
from config.cron import CronError, check
from config.field_paths import entry
from config.quantities import MILLI, Quantity, parse_exact
from webhook.engine import Fields, Request, Violations
from webhook.engine.violation import shown

DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
SYS_ADMIN = "CAP_SYS_ADMIN"  # the only spelling that the API server rejects
# Other resources of containers have a prefix.
RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
PREFIXED = re.compile(rf"(?!requests\.){LABEL_KEY.pattern}")
HUGE = "hugepages-"
LARGEST_ID = 2**31 - 1
SOURCES = ("secretKeyRef", "configMapKeyRef")

Limit = tuple[int, str]  # the most characters of a name, and the rule


def child_limit(kind: str, suffix: str, limit: int) -> Limit:
    """Return the limit of a name that follows from the limit of its child `<name><suffix>`."""
    room = limit - len(suffix)
    return room, f"the {kind} <name>{suffix} has a limit of {limit} characters, which leaves {room}"


def judge_name(request: Request, *limits: Limit, label: str = "") -> Violations:
    """Yield a violation if a name is too long, or is not a DNS label (the rule `label`)."""
    name = request.string("metadata.name") or ""
    most, rule = min(limits, default=(len(name), ""))
    if len(name) > most:
        found = f"{shown(name)} has {len(name)} characters"
        yield request.violation("metadata.name", name, rule, "choose a shorter name", found=found)
    if label and name and not DNS_LABEL.fullmatch(name):
        fix = "use lower-case letters, digits and '-', beginning with a letter"
        yield request.violation("metadata.name", name, label, fix)


def judge_fields(record: Fields, *, may_escalate: bool = True) -> Violations:
    """Yield a violation for each field that no child can have (see _of_security_context)."""
    storage = record.quantity("storage")
    if storage is not None and storage.millis <= 0:
        found, rule = storage.text, "the size of a volume must be positive"
        yield record.violation("storage", found, rule, "write 1Gi or more", found=found)
    yield from _of_resources(record)
    yield from _of_security_context(record.fields("securityContext"), may_escalate=may_escalate)
    for variable in record.each("env"):
        yield from _of_variable(variable)


def judge_autoscaling(workload: Fields, *, excludes_replicas: bool) -> Violations:
    """Yield a violation for bounds that contradict each other, or the number of replicas.

    With `excludes_replicas`, a workload has either a fixed number or autoscaling.
    """
    if not workload.is_set("autoscaling"):
        return
    replicas = workload.integer("replicas")
    least, most = workload.integer("autoscaling.min"), workload.integer("autoscaling.max")
    if least is not None and most is not None and least > most:
        rule = f"min must not exceed max, which is {most}"
        yield workload.violation("autoscaling.min", least, rule, "lower min, or raise max")
    if excludes_replicas and replicas is not None:
        rule = "the autoscaler decides the number of replicas"
        fix = "remove it, and set autoscaling.min and max"
        yield workload.violation("replicas", replicas, rule, fix)


def judge_dumps(backup: Fields) -> Violations:
    """Yield violations of a database's backups; those for a destination are a child Backup."""
    yield from judge_fields(backup)
    if not backup.is_set("destination"):
        yield from judge_schedule(backup)


def judge_schedule(record: Fields) -> Violations:
    """Yield a violation if a schedule is not valid for a CronJob; an unset one has a default."""
    schedule = record.string("schedule")
    try:
        if schedule is not None:
            check(schedule)
    except CronError as error:
        fix = 'write five fields in UTC, such as "0 2 * * *", or a word such as "@daily"'
        yield record.violation("schedule", schedule, f"not a valid cron schedule: {error}", fix)


def _of_resources(record: Fields) -> Violations:
    """Yield a violation for each amount that no container can have, and for claims."""
    if claims := [*record.each("resources.claims")]:
        found, rule = f"{len(claims)} of them", "the pods of this kind have no resource claims"
        yield record.violation("resources.claims", None, rule, "remove them", found=found)
    requests = record.quantities("resources.requests")
    limits = record.quantities("resources.limits")
    for part, amounts in (("requests", requests), ("limits", limits)):
        for name, amount in amounts.items():
            if fault := _fault(name, amount, limits.get(name)):
                path, (found, rule, fix) = entry(f"resources.{part}", name), fault
                yield record.violation(path, found, rule, fix, found=found)
    names = requests.keys() | limits.keys()
    huge = sorted(name for name in names if name.startswith(HUGE))
    if huge and names.isdisjoint(("cpu", "memory")):
        rule, fix = "containers with huge pages need cpu or memory too", "set one"
        yield record.violation("resources", None, rule, fix, found=f"only {huge[0]}")


def _fault(name: str, amount: Quantity, limit: Quantity | None) -> tuple[str, str, str] | None:
    """Return the fault of an amount of a resource, the rule and the fix; None if it is valid."""
    is_huge = name.startswith(HUGE)
    is_extended = "/" in name and "kubernetes.io/" not in name
    page = parse_exact(name.removeprefix(HUGE)) if is_huge else None
    is_named = PREFIXED.fullmatch(name) if "/" in name else name in RESOURCES
    if not (is_named or (page and page.value > 0)):
        fix = "name one, or add its prefix, as in example.com/gpu"
        return amount.text, "containers have no such resource", fix
    if amount.millis < 0:
        return amount.text, "an amount cannot be negative", "write 0 or more"
    if is_extended and amount.millis % MILLI:
        return amount.text, "the resource cannot be divided", "write a whole number"
    if page and amount.millis % (page.value * MILLI):
        return amount.text, "it must consist of whole pages", "write a multiple of the page's size"
    if (is_huge or is_extended) and (limit is None or limit.millis != amount.millis):
        rule, fix = "a request of this resource must equal its limit", "set both to the same amount"
    elif limit is not None and amount.millis > limit.millis:
        rule, fix = "a request must not exceed its limit", "lower the request, or raise the limit"
    else:
        return None
    return f"{amount}, and the limit is {limit or 'missing'}", rule, fix


def _of_security_context(context: Fields, *, may_escalate: bool) -> Violations:
    """Yield a violation for each setting that is invalid alone, or together with another one.

    Some settings imply privilege escalation, which must not be denied beside them; `may_escalate`
    is the default of allowPrivilegeEscalation.
    """
    if not context.value:
        return
    for field in ("runAsUser", "runAsGroup"):
        id = context.integer(field)
        if id is not None and not 0 <= id <= LARGEST_ID:
            rule = f"must be a number from 0 to {LARGEST_ID}"
            yield context.violation(field, id, rule, "choose another")
    rule = "type Localhost, and no other, names a profile"
    for kind in ("seccompProfile", "appArmorProfile"):
        path, is_local = f"{kind}.localhostProfile", context.string(f"{kind}.type") == "Localhost"
        profile = context.string(path)
        if is_local != bool(profile):
            fix, found = "name it" if is_local else "remove it", profile or "missing"
            yield context.violation(path, profile, rule, fix, found=found)
    if context.boolean("windowsOptions.hostProcess"):
        rule = "the pods of this kind have no host network, which host processes need"
        yield context.violation("windowsOptions.hostProcess", True, rule, "remove it")
    allowed = context.boolean("allowPrivilegeEscalation")
    if may_escalate if allowed is None else allowed:
        return
    rule = "it implies privilege escalation, and allowPrivilegeEscalation is false"
    fix = "remove it, or set allowPrivilegeEscalation to true"
    if context.boolean("privileged"):
        yield context.violation("privileged", True, rule=rule, fix=fix)
    if SYS_ADMIN in context.strings("capabilities.add"):
        yield context.violation("capabilities.add", SYS_ADMIN, rule, fix, found=SYS_ADMIN)


def _of_variable(variable: Fields) -> Violations:
    """Yield a violation for an invalid name, and for a variable without exactly one value."""
    name = variable.string("name") or ""
    if not name or "=" in name or not (name.isascii() and name.isprintable()):
        rule = "a variable's name must have printable ASCII characters other than '='"
        yield variable.violation("name", name, rule=rule, fix="choose another")
    if not variable.is_set("valueFrom"):
        return
    if variable.string("value"):
        found, rule = "valueFrom is set too", "a variable must have exactly one value"
        yield variable.violation("value", None, rule, "remove one of them", found=found)
    sources = [source for source in SOURCES if variable.is_set(f"valueFrom.{source}")]
    if len(sources) != 1:
        found = " and ".join(sources) or "no source"
        rule = "a value must come from one key of a Secret or of a ConfigMap"
        fix = f"set {' or '.join(SOURCES)}"
        yield variable.violation("valueFrom", found, rule, fix, found=found)
    for part in ("name", "key"):
        for field in (f"valueFrom.{source}.{part}" for source in sources):
            if not variable.string(field):
                rule = f"a {part} is required"
                yield variable.violation(field, None, rule, "name it", found="missing")
