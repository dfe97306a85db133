"""Validate the names of a PostgreSQL's users and databases, at admission and in the planner."""

import json
import re
from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

SUPERUSER = "postgres"
RESERVED_USERS = frozenset({SUPERUSER, "replicator", "exporter"})
RESERVED_DATABASES = frozenset({"postgres", "template0", "template1"})
USER = re.compile(r"(?!pg_)[a-z]([a-z0-9_]{0,61}[a-z0-9])?")
DATABASE = re.compile(r"[a-z]([a-z0-9_-]{0,61}[a-z0-9])?")
CALLED = "at most 63 lower-case letters, digits and {}, a letter first and no {} last"


class FieldFault(NamedTuple):
    """One invalid field: its path, value, rule and fix."""

    path: str
    found: str
    rule: str
    fix: str


def faults(users: Sequence[str], databases: Sequence[tuple[str, str]]) -> Iterator[FieldFault]:
    """Yield the errors in user names, and in databases and their owners."""
    listed: set[str] = set()
    for at, name in enumerate(users):
        if rule := _user_rule(name, listed):
            yield FieldFault(f"spec.users[{at}].name", json.dumps(name), *rule)
        listed.add(name)
    owners, listed = listed | {SUPERUSER}, set()
    for at, (name, owner) in enumerate(databases):
        if rule := _database_rule(name, listed):
            yield FieldFault(f"spec.databases[{at}].name", json.dumps(name), *rule)
        listed.add(name)
        if owner not in owners:
            rule = (
                "a database belongs to postgres or to one of spec.users",
                "add the user, or name another",
            )
            yield FieldFault(f"spec.databases[{at}].owner", json.dumps(owner), *rule)


def _user_rule(name: str, before: Set[str]) -> tuple[str, str] | None:
    if not USER.fullmatch(name):
        return (
            f"a user's name is {CALLED.format('_', '_')}, and does not begin with pg_",
            "choose another",
        )
    if name in RESERVED_USERS:
        return "PostgreSQL already has a user of that name", "choose another"
    return ("a user is listed once", "remove one of them") if name in before else None


def _database_rule(name: str, before: Set[str]) -> tuple[str, str] | None:
    if not DATABASE.fullmatch(name):
        return f"a database's name is {CALLED.format('_ and -', '_ or -')}", "choose another"
    if name in RESERVED_DATABASES:
        return "every PostgreSQL server already has a database of that name", "choose another"
    return ("a database is listed once", "remove one of them") if name in before else None
