"""Which database tests a machine can run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.databases.binaries import PACKAGES, without

ROOT = Path(__file__).parents[2]


def machine(directory: Path, *packages: str) -> str:
    """Make the programs of some packages, and return their path; PostgreSQL's server is among them."""
    for name in ("postgres", *(program for package in packages for program in PACKAGES[package])):
        (directory / name).touch(mode=0o755)
    return str(directory)


@pytest.mark.parametrize(
    "there", [(), ("postgresql",), ("mariadb-server", "rclone"), tuple(PACKAGES)]
)
def test_each_package_is_looked_for_separately(tmp_path: Path, there: tuple[str, ...]) -> None:
    """Each package may be missing while others are installed."""
    assert set(without(machine(tmp_path, *there), [])) == set(PACKAGES) - set(there)


def test_clients_without_a_server_are_not_enough(tmp_path: Path) -> None:
    """Debian's server, which is not on the PATH, is found."""
    path = machine(tmp_path, "postgresql")
    (tmp_path / "postgres").unlink()
    assert "postgresql" in without(path, [])
    server = tmp_path / "lib/15/bin/postgres"
    server.parent.mkdir(parents=True)
    server.touch()
    assert "postgresql" not in without(path, [tmp_path / "lib"])


@pytest.mark.long
def test_a_machine_without_servers_skips_with_one_line(tmp_path: Path) -> None:
    """The test is skipped; in CI it fails."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n0",
        "-p",
        "no:cacheprovider",
        "tests/databases",
        "-m",
        "databases",
    ]

    def ran(ci: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "GATEWRIGHT_TEST_PATH": str(tmp_path), "CI": ci}
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
        )

    skipped = ran("")
    lines = [line for line in skipped.stdout.splitlines() if line.startswith("SKIPPED")]
    assert (skipped.returncode, len(lines)) == (0, 1), skipped.stdout
    assert lines[0].endswith(
        "database tests need packages that are not installed: postgresql, mariadb-server, rabbitmq-server, amqp-tools, rclone (make databases)"
    )
    assert ran("true").returncode == 1
