"""Say in a sentence why helm, kustomize or kubectl failed."""

import os
import re
import signal
from pathlib import Path

from gatewright.checks.confinement import MAX_CPU, MAX_MEMORY, MAX_OUTPUT
from gatewright.checks.programs import CompletedRun

MAX_MESSAGE = 500  # characters
MEMORY = re.compile(rb"out of memory|cannot allocate memory|MemoryError")
MARK = re.compile(r'^(?:\S+ \S+ +\d+ \S+\] "command failed" err=|Error: |error: )')
HINT = " Use --debug flag to render out invalid YAML"
# How kustomize reports a resource: why it is no file, then why it is no directory.
ACCUMULATED = re.compile(
    r"accumulating \w+: accumulation err='accumulating \w+ from '(.*?)': (.*?)': (.*)"
)
IS_DIRECTORY = "must resolve to a file"


def reason_of(done: CompletedRun, directory: Path) -> str:
    """Return why a program failed that rendered a directory."""
    if done.code == -signal.SIGXFSZ or len(done.out) >= MAX_OUTPUT:
        return f"it writes more than {MAX_OUTPUT >> 20} MiB"
    if done.code == -signal.SIGXCPU:
        return f"it needs more than {MAX_CPU} s of CPU time"
    if MEMORY.search(done.errors):
        return f"it needs more than {MAX_MEMORY >> 30} GiB of memory"
    message = _message(done.errors.decode(errors="replace"))
    while found := ACCUMULATED.fullmatch(message):
        name, why, below = found.groups()
        message = below if why.endswith(IS_DIRECTORY) else f"{name}: {why}"
    for place in (HINT, f"{directory.absolute()}{os.sep}", f"{directory.resolve()}{os.sep}"):
        message = message.replace(place, "")
    return message[:MAX_MESSAGE]


def _message(text: str) -> str:
    """Return the error of a program without warnings before it, the log's prefix and line ends."""
    lines = text.strip().splitlines()
    begin = next((at for at, line in enumerate(lines) if MARK.match(line)), 0)
    message = " ".join(MARK.sub("", "\n".join(lines[begin:])).split())
    # kubectl logs a Go string.
    return message.strip('"').replace('\\"', '"') if message.startswith('"') else message
