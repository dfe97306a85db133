"""The longest stops of processes' event loops: `python -m benchmarks.stops URL ...`.

Each URL is a page that a process computes on its event loop. Pages are fetched every 50 ms until
standard input is closed; then the longest time for each is printed as JSON, in milliseconds. The
time that this process itself waited for a processor is not counted.
"""

import json
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from urllib.parse import urlsplit

INTERVAL = 0.05  # seconds
LIMIT = 60.0  # seconds


def main() -> None:
    """Fetch pages until standard input is closed, and print the longest times."""
    urls = list(map(urlsplit, sys.argv[1:]))
    longest = [0.0] * len(urls)
    while not select.select([sys.stdin], [], [], INTERVAL)[0]:
        for index, url in enumerate(urls):
            connection = HTTPConnection(url.netloc, timeout=LIMIT)
            connection.connect()
            began, used = time.perf_counter(), time.process_time()
            connection.request("GET", url.path)
            connection.getresponse().read()
            own = time.process_time() - used
            longest[index] = max(longest[index], time.perf_counter() - began - own)
            connection.close()
    print(json.dumps([round(each * 1000, 1) for each in longest]))


@contextmanager
def measured_stops(urls: Sequence[str]) -> Iterator[list[float]]:
    """Measure in a process of its own; the list has the longest times after the context."""
    command = [sys.executable, "-m", "benchmarks.stops", *urls]
    found = list[float]()
    with subprocess.Popen(  # noqa: S603
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield found
        found += json.loads(process.communicate()[0])


if __name__ == "__main__":
    main()
