"""Runs a command in a pseudo-terminal."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path

LINES = 24


def on_a_terminal(
    command: Sequence[str], directory: Path, environment: Mapping[str, str], columns: int
) -> tuple[int, str]:
    """Run the command; return its exit code and its output, with escape codes."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, columns, 0, 0))
    shown = b""
    with subprocess.Popen(
        command, stdout=its, stderr=its, cwd=directory, env=environment
    ) as process:
        os.close(its)
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:  # Linux raises this when the other end is closed
            pass
    os.close(ours)
    return process.returncode, shown.decode().replace("\r\n", "\n")
