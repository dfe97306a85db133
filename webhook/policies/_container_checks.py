"""Container settings that the API server rejects: contradictory resources, security contexts and variables.

The API server validates a custom resource against its schema only. Without these rules it would admit an object whose
pods it then rejects.
"""

from webhook.engine import Fields, Violations
from webhook.engine.fields import entry

SYS_ADMIN = "CAP_SYS_ADMIN"  # the only spelling that the API server minds
SOURCES = ("secretKeyRef", "configMapKeyRef")


def of_image(container: Fields) -> Violations:
    """Yield a violation where an image's name begins or ends with a blank."""
    image = container.string("image")
    if image is not None and image != image.strip():
        yield container.violation("image", image, rule="must not begin or end with whitespace", fix="remove it")


def of_resources(container: Fields) -> Violations:
    """Yield a violation for each amount that is negative, and each request above its limit."""
    both = {part: container.quantities(f"resources.{part}") for part in ("requests", "limits")}
    for part, amounts in both.items():
        for name, amount in amounts.items():
            field = entry(f"resources.{part}", name)
            if amount.millis < 0:
                rule, fix = "an amount cannot be negative", "write 0 or more"
                yield container.violation(field, amount.text, rule, fix, found=amount.text)
            limit = both["limits"].get(name, amount)
            if part == "requests" and amount.millis > limit.millis:
                found = f"{amount}, and the limit is {limit}"
                rule = "no container may ask for more than it may use"
                yield container.violation(field, found, rule, "lower the request, or raise the limit", found=found)


def of_security_context(container: Fields, *, may_escalate: bool = True) -> Violations:
    """Yield a violation for rights that include what is forbidden beside them; `may_escalate` where nothing is said."""
    context = container.fields("securityContext")
    said = context.boolean("allowPrivilegeEscalation")
    if may_escalate if said is None else said:
        return
    rule = "what has it can always escalate, and allowPrivilegeEscalation is false"
    fix = "do without, or set allowPrivilegeEscalation to true"
    if context.boolean("privileged"):
        yield context.violation("privileged", True, rule=rule, fix=fix)
    if SYS_ADMIN in context.strings("capabilities.add"):
        yield context.violation("capabilities.add", SYS_ADMIN, rule, fix, found=SYS_ADMIN)


def of_variables(container: Fields) -> Violations:
    """Yield a violation for each environment variable that has no name it could have, or no one value."""
    for each in container.each("env"):
        name = each.string("name") or ""
        if "=" in name or not (name.isascii() and name.isprintable()):
            rule = "a variable's name has printable ASCII characters other than '='"
            yield each.violation("name", name, rule=rule, fix="choose another")
        if not each.is_set("valueFrom"):
            continue
        sources = [source for source in SOURCES if each.is_set(f"valueFrom.{source}")]
        if each.string("value"):
            fix = "leave one of them out"
            yield each.violation("value", None, "a variable has one value", fix, found="valueFrom is set too")
        if len(sources) != 1:
            found = " and ".join(sources) or "no source"
            rule, fix = "a value comes from one key of a Secret or of a ConfigMap", f"set {' or '.join(SOURCES)}"
            yield each.violation("valueFrom", found, rule, fix, found=found)
        for source in sources:
            if not each.string(f"valueFrom.{source}.key"):
                field = f"valueFrom.{source}.key"
                yield each.violation(field, None, "a value is that of one key", "name it", found="missing")
