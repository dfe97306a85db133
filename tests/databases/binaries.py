"""The real databases' programs, from the machine's packages: without them tests are skipped, and fail in CI."""

import os
import shutil
from pathlib import Path

import pytest

POSTGRESQL = Path("/usr/lib/postgresql")  # where Debian keeps each version's programs


def postgresql() -> Path:
    """Return the directory of the newest PostgreSQL's programs."""
    versions = sorted(POSTGRESQL.glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if versions:
        return versions[-1].parent
    if found := shutil.which("postgres"):
        return Path(found).resolve().parent
    missing("postgres", "postgresql")
    raise AssertionError


def missing(program: str, package: str) -> None:
    """Skip a test that needs a program which is not here; in CI that is a failure."""
    reason = f"{program} is not installed: apt-get install {package}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
