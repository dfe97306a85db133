"""CPU time and memory of a process, and progress of a benchmark."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
QUIET_SECONDS = 2.0
QUIET_CPU = (
    0.03  # seconds of processor time in that time: what a settled controller spends on its Lease
)
# Objects that never become ready are looked up at a steady rate, which takes this much.
LOOK_UPS_CPU = 0.2
SETTLES_WITHIN = 900.0
LINE_INTERVAL = 15.0  # seconds between two progress lines, if a line cannot be overwritten

_printed: dict[str, float] = {}  # the last time of each progress line


def cpu_seconds(pid: int) -> float:
    """Return the processor time a process has used, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def megabytes(pid: int, what: str = "VmRSS") -> float:
    """Return the memory of a process now, or its peak (VmHWM)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{what}:")) / 1024


def settled(
    pid: int,
    waiting: Callable[[], object] = lambda: None,
    is_done: Callable[[], bool] = lambda: True,
    quiet_cpu: float = QUIET_CPU,
) -> float:
    """Wait until a process is idle and all work is done; return its processor time.

    It is idle if it takes at most `quiet_cpu` seconds of processor time in QUIET_SECONDS.
    """
    deadline = time.monotonic() + SETTLES_WITHIN
    before = cpu_seconds(pid)
    while time.monotonic() < deadline:
        time.sleep(QUIET_SECONDS)
        now = cpu_seconds(pid)
        if now - before <= quiet_cpu and is_done():  # else it may be waiting
            return before
        waiting()
        before = now
    sys.exit(f"process {pid} does not settle within {SETTLES_WITHIN:.0f} s")


def progress(what: str, far: str = "") -> None:
    """Report progress: on a terminal on one line, which "" clears, elsewhere periodically."""
    if sys.stderr.isatty():
        print(f"\r\033[K{what} {far}\r", end="", file=sys.stderr, flush=True)
    elif what and time.monotonic() - _printed.get(what, -LINE_INTERVAL) >= LINE_INTERVAL:
        _printed[what] = time.monotonic()
        print(f"{time.strftime('%H:%M:%S')} {what} {far}".rstrip(), file=sys.stderr, flush=True)
