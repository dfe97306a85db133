"""The command line with unusual streams: a closed pipe, a full disk, closed files, odd characters, Ctrl-C."""

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gatewright.cli import main
from tests.gatewright.started import COMMAND

pytestmark = pytest.mark.long  # nearly every test starts processes

ROOT = Path(__file__).parents[2]
PRODUCTION = str(ROOT / "config" / "policies" / "production.yaml")
SHOP = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: production}
spec: {replicas: 11}
"""
PRINTING = [
    ("--help",),
    ("policies",),
    ("check", "--policies", PRODUCTION, "-o", "json", "shop.yaml"),
]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to a temporary directory with a manifest that is denied."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GATEWRIGHT_POLICIES", raising=False)
    Path("shop.yaml").write_text(SHOP)


def called(
    *arguments: str,
    redirected: str = "",
    out: int = subprocess.PIPE,
    err: int = subprocess.PIPE,
    **environment: str,
) -> tuple[int, str, str]:
    """Run the command in a shell with redirections; return exit code, stdout and stderr."""
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {redirected}', "sh", str(COMMAND), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=err,
        env={**os.environ, **environment},
        timeout=60,
    )
    return done.returncode, (done.stdout or b"").decode(), (done.stderr or b"").decode()


@pytest.fixture
def unread() -> int:
    """Return the writing end of a pipe without a reader, as in `… | head -1`."""
    reads, writes = os.pipe()
    os.close(reads)
    return writes


@pytest.mark.parametrize("arguments", PRINTING, ids=" ".join)
def test_a_closed_pipe_is_silent(arguments: tuple[str, ...], unread: int) -> None:
    """The exit code is that of a closed pipe, never that of a denial."""
    assert called(*arguments, out=unread) == (128 + signal.SIGPIPE, "", "")


@pytest.mark.parametrize("arguments", PRINTING, ids=" ".join)
def test_a_full_disk_is_an_error(arguments: tuple[str, ...]) -> None:
    """Output that cannot be written is not a verdict."""
    told = "standard output: No space left on device\n"
    assert called(*arguments, redirected=">/dev/full") == (3, "", told)


def test_a_file_on_a_full_disk_is_named() -> None:
    """The other outputs are not blamed."""
    check = ("check", "--policies", PRODUCTION)
    for options in (
        ("-o", "json=/dev/full"),
        ("--registry-access", "--record-images", "/dev/full"),
        ("--write-exceptions", "/dev/full", "--reason", "old", "--expires", "2999-01-01"),
    ):
        told = (3, "", "/dev/full: No space left on device\n")
        assert called(*check, *options, "shop.yaml") == told


def test_closed_streams_are_tolerated() -> None:
    """The exit code has the verdict."""
    denied = ("check", "--policies", PRODUCTION, "shop.yaml")
    assert called(*denied, redirected=">&-") == (1, "", "")
    assert called("check", "--policies", PRODUCTION, "-", redirected="<&-") == (
        3,
        "0 objects\n",
        "<stdin>: standard input is closed\n",
    )
    assert called("check", "none.yaml", redirected="2>&-") == (3, "", "")
    assert called("check", "none.yaml", redirected="2>/dev/full") == (3, "", "")
    assert called("check", redirected="2>/dev/full") == (2, "", "")


def test_a_closed_standard_error_keeps_the_exit_code(unread: int) -> None:
    """Errors that cannot be printed do not change it."""
    assert called("check", "none.yaml", err=unread)[0] == 3


def test_unsupported_characters_are_escaped() -> None:
    """A terminal that cannot show a character gets its code point."""
    code, out, err = called("check", "--help", PYTHONIOENCODING="latin-1")
    assert (code, out.splitlines()[0], err) == (
        0,
        "Usage: gatewright check [OPTIONS] [MANIFEST\\u2026]",
        "",
    )


def test_a_file_name_that_is_not_utf8_is_escaped() -> None:
    """Its bytes are shown as escapes, in the table and in JSON."""
    name = os.fsdecode(b"caf\xe9.yaml")
    Path(name).write_text(SHOP)
    code, out, err = called("check", "--policies", PRODUCTION, name)
    assert (code, out.splitlines()[0], err) == (
        1,
        "denied  Deployment production/shop  (caf\\xe9.yaml:1)",
        "",
    )
    code, out, err = called("check", "--policies", PRODUCTION, "-o", "json", name)
    assert (code, json.loads(out)["results"][0]["file"], err) == (1, "caf\\xe9.yaml", "")


def test_ctrl_c_ends_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While it waits for standard input: only a newline, and the shell's exit code for an interrupt."""

    class Interrupted(io.RawIOBase):
        def readinto(self, _: Any) -> int:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Interrupted()))  # type: ignore[type-var]
    with pytest.raises(SystemExit) as ended:
        main(["check", "--policies", PRODUCTION, "-"])
    assert (ended.value.code, *capsys.readouterr()) == (130, "", "\n")
