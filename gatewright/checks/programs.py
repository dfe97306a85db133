"""Run programs that read what a stranger wrote, and say why they failed.

They get no variables and no network, and their resources are bounded. They end at their time limit,
or with this process.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Lock, current_thread, main_thread
from typing import IO, Any, NamedTuple, NoReturn, Self

MAX_MEMORY = 2 << 30  # bytes of address space; helm and kubectl need about 1 GiB of it when idle
MAX_OUTPUT = 64 << 20  # bytes of each file that a program writes, its output included
MAX_CPU = 120  # seconds
MAX_OPEN_FILES = 1024
NOWHERE = "127.0.0.1:9"
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
# Go sends nothing to a proxy that is for the loopback: the network namespace, and the references of
# a kustomization that are refused before it is built, close that.
CLOSED = {
    **dict.fromkeys(PROXIES, f"http://{NOWHERE}"),
    "GIT_ALLOW_PROTOCOL": "none",
    "HELM_NO_PLUGINS": "1",
}
# The shell sets the limits (KiB, blocks of 512 bytes, seconds, files) and becomes the program.
LIMITS = (
    f"ulimit -v {MAX_MEMORY >> 10}; ulimit -f {MAX_OUTPUT >> 9}; ulimit -t {MAX_CPU}; "
    f'ulimit -n {MAX_OPEN_FILES}; exec "$@"'
)


def confine(command: Sequence[str]) -> list[str]:
    """Return a command that runs `command` with limits and, where the kernel permits, no network.

    Linux has all of this. Elsewhere, there is no namespace and no limit of memory.
    """
    return ["/bin/sh", "-c", LIMITS, "sh", *_without_network(), *command]


def closed_environment(home: str) -> Mapping[str, str]:
    """Return all the variables that a program gets; `home` is an empty directory."""
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": home, "TMPDIR": home, **CLOSED}


@cache
def _without_network() -> tuple[str, ...]:
    """Return the command that runs another one in a network namespace of its own.

    Empty if there is no such program, or the kernel does not permit it.
    """
    program = shutil.which("unshare", path=f"/usr/bin:/bin:{os.environ.get('PATH', '')}")
    if program is None:
        return ()
    # Only root needs no user namespace.
    command = (program, "--net") if os.geteuid() == 0 else (program, "--map-root-user", "--net")
    tried = subprocess.run([*command, "/bin/true"], check=False, capture_output=True)  # noqa: S603
    return command if tried.returncode == 0 else ()


ENDING = (signal.SIGTERM, signal.SIGHUP)  # by default, Python ends without a clean-up


class CompletedRun(NamedTuple):
    """The exit code of a program, and what it printed."""

    code: int
    out: bytes
    errors: bytes


class Programs:
    """Runs programs from several threads; none outlives the context, nor do its child processes."""

    def __init__(self) -> None:
        """Start without programs."""
        self._lock = Lock()
        self._running = set[subprocess.Popen[bytes]]()
        self._has_ended = False
        self._handlers = dict[signal.Signals, Any]()

    def __enter__(self) -> Self:
        # Only the main thread may set handlers: others run this in tests.
        for number in ENDING if current_thread() is main_thread() else ():
            if signal.getsignal(number) is signal.SIG_DFL:
                self._handlers[number] = signal.signal(number, _exit)
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._has_ended = True
            for process in self._running:
                _kill_group(process)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def run(self, command: Sequence[str], seconds: float) -> CompletedRun:
        """Return the exit code and the output of a program, confined.

        Raises TimeoutExpired after `seconds`, CancelledError at the end of the context.
        """
        with TemporaryDirectory() as home, TemporaryFile() as out, TemporaryFile() as errors:
            with self._lock:
                if self._has_ended:
                    raise CancelledError
                process = subprocess.Popen(  # noqa: S603
                    confine(command),
                    stdin=subprocess.DEVNULL,
                    # Files, not pipes: their size is limited.
                    stdout=out,
                    stderr=errors,
                    env=closed_environment(home),
                    process_group=0,
                )
                self._running.add(process)
            with process:
                try:
                    process.wait(seconds)
                finally:
                    with self._lock:
                        self._running.remove(process)
                        _kill_group(process)
            texts = [_content(file) for file in (out, errors)]
        return CompletedRun(process.returncode, *texts)


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a program that runs in its own process group, and its child processes."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _exit(number: int, _: object) -> NoReturn:
    sys.exit(128 + number)


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
    while match := ACCUMULATED.fullmatch(message):
        name, why, below = match.groups()
        message = below if why.endswith(IS_DIRECTORY) else f"{name}: {why}"
    for place in (HINT, f"{directory.absolute()}{os.sep}", f"{directory.resolve()}{os.sep}"):
        message = message.replace(place, "")
    return message[:MAX_MESSAGE]


def _message(text: str) -> str:
    """Return the error of a program without warnings before it, the log's prefix and line ends."""
    lines = text.strip().splitlines()
    begin = next((at for at, line in enumerate(lines) if MARK.match(line)), 0)
    message = " ".join(MARK.sub("", "\n".join(lines[begin:])).split())
    # kubectl logs a Go string, or one of several lines between < and >.
    message = message.removeprefix("< ").removesuffix(" >") if message.startswith("< ") else message
    return message.strip('"').replace('\\"', '"') if message.startswith('"') else message
