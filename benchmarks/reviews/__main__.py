"""`python -m benchmarks.reviews`: the cost of a review, compared with three webhooks in Go.

Five servers answer the same reviews over TLS 1.3 in interleaved rounds, each on one core (so Go has
GOMAXPROCS=1, and is built with -trimpath -ldflags "-s -w" and no GOFLAGS), with the client on
another: Gatewright with config/policies/production.yaml and security-defaults; the floor, aiohttp
that decodes and gives a constant answer; Go's net/http with the types of k8s.io/api; the same with
structs of the fields that the rules read; Go with controller-runtime. All must give the same
verdict before a body is measured. Processor time is the server's, measured by the kernel. Without a
counterpart in Go are reviews of custom resources with their children, by a tenant's rule in CEL,
and by the presets; these are compared with typed Go's allowed Deployment.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.measured import progress
from benchmarks.reviews.bars import tables
from benchmarks.reviews.bodies import bodies
from benchmarks.reviews.sections import Sections
from benchmarks.reviews.servers import Bench
from gatewright.console.terminal import say, table
from gatewright.processes.memory import TRIM_SECONDS

SECTIONS = ("bodies", "others", "replicas", "policies", "crowd", "neighbour", "starts")


def main() -> int:
    """Measure the sections that the command line names, and print them."""
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as directory:
        run = _run(arguments, Path(directory))
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(run, indent=1) + "\n")
    for title, columns, rows in tables(run):
        say(f"\n{title}")
        table(rows, columns)
    return 0


def _arguments() -> argparse.Namespace:
    known, parts = list(bodies()), ", ".join(SECTIONS)
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reviews", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "--bodies", nargs="+", choices=known, default=known, metavar="BODY", help=", ".join(known)
    )
    parser.add_argument(
        "--only", nargs="+", choices=SECTIONS, default=SECTIONS, metavar="PART", help=parts
    )
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds (default: 7)")
    parser.add_argument(
        "--reviews", type=int, default=2000, help="reviews a round; large bodies: a tenth"
    )
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="write what was found as JSON (/dev/stdout for standard output)",
    )
    return parser.parse_args()


def _run(arguments: argparse.Namespace, directory: Path) -> dict[str, Any]:
    known = bodies()
    run: dict[str, Any] = {
        "machine": _machine(),
        "rounds": arguments.rounds,
        "reviews": arguments.reviews,
    }
    with ExitStack() as stack:
        bench = Bench(directory, known["deny"])
        sections = Sections(bench, stack, known, arguments.rounds, arguments.reviews)
        run["memory"] = {"before": sections.memory()}
        for name in SECTIONS:
            if name in arguments.only:
                run[name] = (
                    dict(sections.bodies(arguments.bodies))
                    if name == "bodies"
                    else getattr(sections, name)()
                )
        progress("memory")
        time.sleep(2 * TRIM_SECONDS)
        run["memory"] |= {"after": sections.memory(), "most": sections.memory("VmHWM")}
        progress("")
    return run


def _machine() -> dict[str, Any]:
    go = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=True)  # noqa: S607
    python = f"{platform.python_version()} ({Path(sys.executable).resolve()})"
    return {"cores": os.cpu_count(), "python": python, "go": go.stdout.strip()}


if __name__ == "__main__":
    sys.exit(main())
