"""Constraints on an object's name that come from the names of its children."""

import re

from webhook.engine import Request, Violation, Violations
from webhook.engine.violation import shown

OBJECT_NAME = re.compile(r"(?!.{254})[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def too_long(request: Request, limit: int, rule: str) -> Violations:
    """Yield a violation where the object's name has more characters than `limit`."""
    name = request.string("metadata.name") or ""
    if len(name) > limit:
        found = f"{shown(name)} has {len(name)} characters"
        yield Violation("metadata.name", found=found, rule=rule, fix="choose a shorter name")


def no_dns_label(request: Request, rule: str) -> Violations:
    """Yield a violation where the object's name, however long, cannot be a Service's."""
    name = request.string("metadata.name")
    if name and not DNS_LABEL.fullmatch(name):
        fix = "use lower-case letters, digits and '-', beginning with a letter"
        yield request.violation("metadata.name", name, rule=rule, fix=fix)


def of_object_name(path: str, name: str | None) -> Violations:
    """Yield a violation where a field names an object that cannot be."""
    if name and not OBJECT_NAME.fullmatch(name):
        fix = "use lower-case letters, digits, '-' and '.'"
        yield Violation(path, found=shown(name), rule="no object can have that name", fix=fix)
