"""Validate the settings of a PostgreSQL, at admission and in the planner.

The table is that of Patroni 4.1 (`available_parameters`), for major versions 12 to 18.
https://www.postgresql.org/docs/current/runtime-config.html
"""

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

from config.postgresql_names import FieldFault

DEFAULT_VERSION: Final = "17"  # of a spec without one
STRICT_INSTANCES = 3  # with fewer, strict commits would stop with the loss of one instance
NETWORK = "the addresses of instances are set by the controller"
FILES = "the files of an instance are set by the controller"
REPLICATION = "replication is set by Patroni"
RESERVED = {
    "listen_addresses": NETWORK,
    "port": NETWORK,
    "unix_socket_directories": NETWORK,
    "unix_socket_permissions": NETWORK,
    "data_directory": FILES,
    "config_file": FILES,
    "hba_file": FILES,
    "ident_file": FILES,
    "external_pid_file": FILES,
    "cluster_name": REPLICATION,
    "hot_standby": REPLICATION,
    "wal_log_hints": REPLICATION,
    "primary_conninfo": REPLICATION,
    "primary_slot_name": REPLICATION,
    "synchronous_standby_names": REPLICATION,
    "password_encryption": "passwords are stored as scram-sha-256",
    "ssl": "connections to a PostgreSQL are not encrypted",
}
PREFIXES = ("recovery_", "restore_command", "promote_trigger_file", "archive_cleanup_command")
# Patroni starts no instance with less. https://patroni.readthedocs.io/en/latest/patroni_configuration.html
LEAST = {
    "max_connections": 25,
    "max_locks_per_transaction": 32,
    "max_replication_slots": 4,
    "max_wal_senders": 3,
    "max_worker_processes": 2,
}
BOOLEANS = {"on", "off", "true", "false", "yes", "no", "1", "0"}
AMOUNT = re.compile(r"(-?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)\s*([A-Za-z]*)")
BYTES = {"B": 1, "kB": 2**10, "8kB": 2**13, "MB": 2**20, "GB": 2**30, "TB": 2**40}
MICROSECONDS = {
    "us": 1,
    "ms": 1000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?")


class ServerParameter(NamedTuple):
    """A parameter of some major versions: its type, bounds in its unit, and values."""

    type: str
    minimum: float
    maximum: float
    unit: str
    values: tuple[str, ...]


def parameter_faults(parameters: Mapping[str, int | str], version: str) -> Iterator[FieldFault]:
    """Yield the errors in names and values of a major version's parameters."""
    for name, value in parameters.items():
        if fault := _fault(name, str(value), version):
            yield FieldFault(f"spec.parameters[{name}]", json.dumps(value), *fault)


def synchronous_faults(synchronous: str, replicas: int) -> Iterator[FieldFault]:
    """Yield the error of strict commits with too few instances."""
    if synchronous == "Required" and replicas < STRICT_INSTANCES:
        rule = "with fewer than three instances, writes would stop with one instance"
        fix = "raise replicas, or write Preferred"
        yield FieldFault("spec.synchronous", json.dumps(synchronous), rule, fix)


def _fault(name: str, value: str, version: str) -> tuple[str, str] | None:
    if not NAME.fullmatch(name):
        return "a parameter's name has lower-case letters, digits and _", "correct it"
    if rule := RESERVED.get(name) or (REPLICATION if name.startswith(PREFIXES) else None):
        return rule, "remove it"
    if not value.isprintable():
        return "a value has no line breaks or control characters", "remove them"
    if "." in name:
        return None  # of an extension
    versions = _read_table().get(name)
    if versions is None:
        return "PostgreSQL has no such parameter", "correct its name"
    parameter = versions.get(version)
    if parameter is None:
        first, last = min(versions, key=int), max(versions, key=int)
        supported = first if first == last else f"{first} to {last}"
        return f"version {version} has no such parameter, only {supported}", "remove it"
    if name == "wal_level" and value == "minimal":
        return "standbys need replica or logical", "write replica or logical"
    rule = _value_rule(parameter, value, LEAST.get(name, parameter.minimum))
    return (rule, "correct it") if rule else None


def _value_rule(parameter: ServerParameter, value: str, least: float) -> str | None:
    """Return the rule that a value breaks; None if it is valid."""
    text = value.strip().lower()
    if parameter.type in ("Bool", "EnumBool") and text in BOOLEANS:
        return None
    if parameter.type in ("Bool", "Enum", "EnumBool"):
        allowed = [*([] if parameter.type == "Enum" else ("on", "off")), *parameter.values]
        return None if text in parameter.values else f"must be one of {', '.join(allowed)}"
    if parameter.type == "String":
        return None
    amount = _amount(value, parameter.unit)
    if amount is None:
        unit = f" with a unit, such as {_unit_example(parameter.unit)}" if parameter.unit else ""
        return f"must be a number{unit}"
    if not least <= amount <= parameter.maximum:
        unit = f", in units of {parameter.unit}" if parameter.unit else ""
        return f"must be from {_number(least)} to {_number(parameter.maximum)}{unit}"
    return None


def _amount(value: str, unit: str) -> float | None:
    """Return a number in a parameter's unit; None if it is none, or has another dimension."""
    if not (match := AMOUNT.fullmatch(value.strip())):
        return None
    number, given = float(match[1]), match[2]
    if not given:
        return number
    scales = next((each for each in (BYTES, MICROSECONDS) if unit in each and given in each), None)
    return None if scales is None else number * scales[given] / scales[unit]


def _unit_example(unit: str) -> str:
    return "64MB" if unit in BYTES else "30s"


def _number(value: float) -> str:
    return f"{value:g}" if math.fabs(value) >= 2**63 or value % 1 else str(int(value))


@cache
def _read_table() -> dict[str, dict[str, ServerParameter]]:
    """Return the parameters by name in lower case and major version."""
    table: dict[str, dict[str, ServerParameter]] = {}
    text = (resources.files("config") / "postgresql_parameters.csv").read_text()
    for row in csv.DictReader(text.splitlines()):
        parameter = ServerParameter(
            row["type"],
            float(row["minimum"] or "-inf"),
            float(row["maximum"] or "inf"),
            row["unit"],
            tuple(row["values"].split("|")) if row["values"] else (),
        )
        for version in range(int(row["first"]), int(row["last"]) + 1):
            table.setdefault(row["name"].lower(), {})[str(version)] = parameter
    return table
