"""Rerun a command whenever a file changes: `gatewright test --watch`."""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

SECONDS = 0.3  # between two checks of the files


def run(paths: Sequence[Path]) -> int:
    """Run this command line without --watch after each change below `paths`, until Ctrl-C.

    Each run is a separate process, so that changed policy modules are reloaded.
    """
    arguments = [each for each in sys.argv[1:] if each != "--watch"]
    previous: dict[Path, float] | None = None
    try:
        while True:
            times = _times(paths)
            if times != previous:
                previous = times
                subprocess.run([sys.executable, "-m", "gatewright", *arguments], check=False)  # noqa: S603
                print("-- waiting for changes; press Ctrl-C to stop", file=sys.stderr, flush=True)
            time.sleep(SECONDS)
    except KeyboardInterrupt:
        return 0


def _times(paths: Sequence[Path]) -> dict[Path, float]:
    """Return the modification time of each file."""
    times: dict[Path, float] = {}
    for path in paths:
        for file in [path] if path.is_file() else path.rglob("*"):
            try:
                if file.suffix in {".yaml", ".yml", ".json", ".py"}:
                    times[file] = file.stat().st_mtime
            except OSError:
                continue
    return times
