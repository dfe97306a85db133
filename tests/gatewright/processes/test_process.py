"""Start, signals and end of a process."""

import json
import signal
import socket
import subprocess
import sys

import pytest

pytestmark = pytest.mark.long  # each test is a process

PROGRAM = """
import asyncio, logging
from gatewright.processes import logs, process
from gatewright.processes.listeners import ProcessHealth

async def part(stop):
    print("running", flush=True)
    await stop.wait()
    {end}

async def endless():
    try:
        await asyncio.Event().wait()
    finally:
        print("cancelled", flush=True)

async def main():
    await process.run(
        {{"webhook": part}}, background={{"watch": endless}}, observed=ProcessHealth(),
        metrics=("127.0.0.1", {port}), health=("127.0.0.1", 0),
    )

logs.install()
raise SystemExit(process.execute(main()))
"""


class Running:
    """A separate process with running parts."""

    def __init__(self, end: str = "pass", port: int = 0) -> None:
        program = PROGRAM.format(end=end, port=port)
        self.process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_until_running(self) -> None:
        """Return when the part has printed its line."""
        assert self.process.stdout.readline() == "running\n"

    def end(self) -> tuple[int, str, list[dict]]:
        """Return the exit code, standard output and the log lines."""
        printed, logged = self.process.communicate(timeout=20)
        return self.process.returncode, printed, [json.loads(line) for line in logged.splitlines()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_parts_cleanly(number):
    """The parts end first, then background tasks are cancelled, and the exit code is 0."""
    running = Running(end='print("drained", flush=True)')
    running.wait_until_running()
    running.process.send_signal(number)
    code, printed, logged = running.end()
    assert (code, printed) == (0, "drained\ncancelled\n")
    assert [line["message"] for line in logged] == [
        "started",
        f"{number.name}: stopping",
        "stopped",
    ]


def test_a_second_signal_ends_the_process_at_once():
    """A second Ctrl-C skips the drain."""
    running = Running(end='print("draining", flush=True); await asyncio.Event().wait()')
    running.wait_until_running()
    running.process.send_signal(signal.SIGTERM)
    assert running.process.stdout.readline() == "draining\n"
    running.process.send_signal(signal.SIGINT)
    assert running.end()[0] == 128 + signal.SIGINT


@pytest.mark.parametrize(
    ("end", "message", "traceback"),
    [
        ("1 / 0", "webhook failed: division by zero", True),
        ('raise OSError("the disk is gone")', "webhook failed: the disk is gone", False),
        (
            'raise ExceptionGroup("", [OSError("the disk is gone")])',
            "webhook failed: the disk is gone",
            False,
        ),
    ],
)
def test_a_part_that_fails_ends_the_process(end, message, traceback):
    """The exit code is 1, and one line has the part and its error."""
    running = Running(end)
    running.wait_until_running()
    running.process.terminate()
    code, _, logged = running.end()
    assert code == 1
    assert logged[-1]["message"] == message
    assert ("exception" in logged[-1]) is traceback


def test_a_part_that_ends_early_is_a_failure():
    """A part may only end after a signal."""
    program = PROGRAM.format(end="pass", port=0).replace("await stop.wait()", "return")
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=20
    )
    assert ended.returncode == 1
    assert (
        json.loads(ended.stderr.splitlines()[-1])["message"]
        == "webhook failed: webhook ended unexpectedly"
    )


def test_a_port_in_use_is_one_clear_line():
    """The line has the address, without a traceback."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, logged = Running(port=port).end()
    assert code == 1
    assert [line["level"] for line in logged] == ["critical"]
    assert logged[0]["message"] == (
        f"cannot listen on 127.0.0.1:{port}: address already in use; "
        "choose another address with --metrics-listen or --health-listen"
    )
    assert "exception" not in logged[0]
