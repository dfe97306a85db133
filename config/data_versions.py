"""Which versions of databases and queues can open the data of others.

Admission and the planners use it.

A PostgreSQL with a later version is admitted: it is upgraded, or its condition reports that
`majorUpgrade` does not allow it.
"""

import re
from itertools import pairwise
from typing import NamedTuple

MYSQL = re.compile(r"(5\.7|8\.0|8\.4|9\.[0-9]+)(\.[0-9]+)?")
# Versions that a queue may have. An upgrade within a major version needs no step between.
QUEUES = {
    "rabbitmq": re.compile(r"4(\.[0-9]+){0,2}"),
    "nats": re.compile(r"2\.[0-9]+(\.[0-9]+)?"),
}
MYSQL_SERIES = ("5.7", "8.0", "8.4", "9")  # an upgrade goes through each series


class IncompatibleVersion(NamedTuple):
    """Why a server of another version cannot open the data: the rule and the fix."""

    rule: str
    fix: str

    def __str__(self) -> str:
        """The text as conditions show it."""
        return f"{self.rule}. {self.fix[:1].upper()}{self.fix[1:]}"


def refusal(type: str, version: str, data: str) -> IncompatibleVersion | None:
    """Return why a server of `version` cannot open `data`, the version that opened it last.

    None if it can.
    """
    if type == "mysql":
        return _of_mysql(version, data)
    if type in QUEUES:
        return _of_queue(type, version, data)
    if version == data:
        return None
    rule, back = f"the data is of PostgreSQL {data}", f"set it back to {data}"
    if is_later(version, data):
        fix = (
            f"{back}, or set spec.majorUpgrade to Reversible for an upgrade in place, or restore a "
            "Backup into a new PostgreSQL by spec.restoreFrom"
        )
        return IncompatibleVersion(f"{rule}, and spec.majorUpgrade is Refused", fix)
    fix = f"{back}, or move a dump to a new database"
    return IncompatibleVersion(f"{rule}, which PostgreSQL {version} cannot open", fix)


def denial(type: str, version: str, data: str) -> IncompatibleVersion | None:
    """Return why a server of `version` is denied for existing `data`."""
    if type == "postgresql" and is_later(version, data):
        return None
    return refusal(type, version, data)


def is_later(version: str, data: str) -> bool:
    """Return whether one major version of PostgreSQL is later than another."""
    return version.isdecimal() and data.isdecimal() and int(version) > int(data)


def _of_mysql(version: str, data: str) -> IncompatibleVersion | None:
    """Return why a MySQL server cannot open data: it upgrades one series at a time."""
    if not (MYSQL.fullmatch(version) and MYSQL.fullmatch(data)):
        return None  # unknown
    rule = f"MySQL {version} cannot open the data of {data}"
    if _number(version) < _number(data):
        return IncompatibleVersion(rule, f"set it back to {data}, or move a dump to a new database")
    above = dict(pairwise(MYSQL_SERIES)).get(_series(data))
    if _series(version) in (_series(data), above):
        return None
    return IncompatibleVersion(rule, f"set it to {above} first, and continue when that is ready")


def _of_queue(type: str, version: str, data: str) -> IncompatibleVersion | None:
    """Return why a queue's server cannot open data: that of a later version."""
    pattern = QUEUES[type]
    is_known = pattern.fullmatch(version) and pattern.fullmatch(data)
    # "4" is the newest 4.x, which nothing is later than.
    if not is_known or len(_number(version)) == 1 or _number(version) >= _number(data):
        return None
    rule = f"{type} {version} cannot open the data of {data}"
    return IncompatibleVersion(rule, f"set it back to {data}, or use another queue")


def _number(version: str) -> tuple[int, ...]:
    """Return the part of the version that decides the data format; patch releases keep it."""
    return tuple(map(int, version.split(".")[:2]))


def _series(version: str) -> str:
    return next(each for each in MYSQL_SERIES if f"{version}.".startswith(f"{each}."))
