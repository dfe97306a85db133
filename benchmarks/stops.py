"""The longest stops of processes' event loops: `python -m benchmarks.stops PID=URL ...`.

Each URL is a page that the process with that number computes on its event loop. Pages are fetched
every 50 ms until standard input is closed; then the longest time for each is printed as JSON, in
milliseconds. Time in which the process did not run counts as little as time in which this one did
not, since both wait for a processor on a busy machine.
"""

import json
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

INTERVAL = 0.05  # seconds
LIMIT = 60.0  # seconds


def main() -> None:
    """Fetch pages until standard input is closed, and print the longest times."""
    pages = [(int(pid), urlsplit(url)) for pid, _, url in (a.partition("=") for a in sys.argv[1:])]
    longest = [0.0] * len(pages)
    while not select.select([sys.stdin], [], [], INTERVAL)[0]:
        for index, (pid, url) in enumerate(pages):
            connection = HTTPConnection(url.netloc, timeout=LIMIT)
            connection.connect()
            began, used, ran = time.perf_counter(), time.process_time(), seconds_run(pid)
            connection.request("GET", url.path)
            connection.getresponse().read()
            own = time.process_time() - used
            elapsed = time.perf_counter() - began - own
            longest[index] = max(longest[index], min(elapsed, seconds_run(pid) - ran))
            connection.close()
    print(json.dumps([round(each * 1000, 1) for each in longest]))


def seconds_run(pid: int) -> float:
    """Return how long the threads of a process have run, as precisely as the scheduler counts."""
    nanoseconds = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that ended meanwhile
            nanoseconds += int((task / "schedstat").read_text().split()[0])
    return nanoseconds / 1e9


@contextmanager
def measured_stops(pages: Mapping[int, str]) -> Iterator[list[float]]:
    """Measure in a process of its own, by process number; the list is filled at the end."""
    arguments = [f"{pid}={url}" for pid, url in pages.items()]
    command = [sys.executable, "-m", "benchmarks.stops", *arguments]
    found = list[float]()
    with subprocess.Popen(  # noqa: S603
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield found
        found += json.loads(process.communicate()[0])


if __name__ == "__main__":
    main()
