"""The programs of real databases, from the machine's packages.

Tests whose programs are missing are skipped; in CI they fail.

`@pytest.mark.databases("postgresql", "rclone")` names the packages that a test needs. They are looked up before any
fixture starts, so a machine with only some packages runs the tests that need only these.
"""

import functools
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.controlplane.gobuild import build

RABBITMQ = Path("/usr/lib/rabbitmq/bin")  # the scripts without Debian's check of the user
POSTGRESQL = Path("/usr/lib/postgresql")  # where Debian keeps the servers of each version
CLIENTS = "/usr/local/bin:/usr/bin:/bin"  # where the scripts of images look for clients
SERVERS = f"{CLIENTS}:/usr/sbin:{RABBITMQ}"
NATS = Path(__file__).parent / "nats"  # a Go module
PACKAGES = {
    "postgresql": ("psql", "pg_dump", "pg_dumpall", "pg_restore"),
    "mariadb-server": (
        "mariadb",
        "mariadb-dump",
        "mysql",
        "mysqldump",
        "mariadb-install-db",
        "mariadbd",
    ),
    "rabbitmq-server": ("rabbitmq-server", "epmd"),
    "amqp-tools": ("amqp-publish", "amqp-get", "amqp-declare-queue"),
    "rclone": ("rclone",),
}


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip `@pytest.mark.databases(…)` if one of the packages is missing; in CI, fail."""
    if (marker := item.get_closest_marker("databases")) and set(marker.args) & set(missing()):
        reason = f"database tests need packages that are not installed: {', '.join(missing())} (make databases)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)


@functools.cache
def missing() -> tuple[str, ...]:
    """Return the packages that this machine lacks."""
    return tuple(without(os.environ.get("GATEWRIGHT_TEST_PATH", SERVERS), [POSTGRESQL]))


def without(path: str, postgresql: Iterable[Path]) -> Iterable[str]:
    """Yield the packages whose programs are not on `path`; servers may also be in `postgresql`."""
    for package, programs in PACKAGES.items():
        has_server = package != "postgresql" or _servers(path, postgresql)
        if not has_server or not all(shutil.which(program, path=path) for program in programs):
            yield package


def postgresql() -> Path:
    """Return the directory of the newest PostgreSQL's programs."""
    return _servers(SERVERS, [POSTGRESQL])[-1]


def program(name: str) -> Path:
    """Return a program of a package that a test's marker names."""
    found = shutil.which(name, path=SERVERS)
    assert found is not None, name
    return Path(found)


def _servers(path: str, directories: Iterable[Path]) -> list[Path]:
    """Return the directories with a PostgreSQL server, the newest last."""
    versions = [each for directory in directories for each in directory.glob("*/bin/postgres")]
    on_path = shutil.which("postgres", path=path)
    found = sorted(versions, key=lambda each: int(each.parts[-3]))
    return [each.parent for each in ([Path(on_path).resolve()] if on_path else []) + found]


def nats_server() -> Path:
    """Return the server of NATS, built once."""
    return build(NATS, "github.com/nats-io/nats-server/v2", "nats-server", takes="a minute")


def nats_client() -> Path:
    """Return the client of NATS, built once."""
    return build(NATS, ".", "nats-client")
