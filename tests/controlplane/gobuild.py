"""Builds a Go program once and caches it outside the repository, under the hash of its sources."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRESS_EVERY = 10.0


class MissingToolError(Exception):
    """A tool is missing; the message names it and the alternatives."""


class BuildError(Exception):
    """`go build` failed."""


def build(
    module: Path, package: str, name: str, *, ldflags: str = "-s -w", takes: str = "a moment"
) -> Path:
    """Return the program built from `package` of the Go module in `module`; it is built only once."""
    program = program_path(module, package, name, ldflags=ldflags)
    if program.exists():
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    with locked(program.parent / "lock"):
        if not program.exists():
            command = _command(package, ldflags)
            _run(command, module, program, f"building {name} once (this takes {takes})")
    return program


def program_path(module: Path, package: str, name: str, *, ldflags: str = "-s -w") -> Path:
    """Return the path at which `build` caches the program of these arguments."""
    content = _content_hash(module, _command(package, ldflags))
    return cache_directory() / name / content / name


def _command(package: str, ldflags: str) -> list[str]:
    options = "-v -mod=readonly -trimpath -buildvcs=false"
    return ["go", "build", *options.split(), "-ldflags", ldflags, package]


def cache_directory() -> Path:
    """The cache directory of built programs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gatewright"


def _content_hash(module: Path, command: list[str]) -> str:
    content = hashlib.sha256(f"{_toolchain(module)} {command}".encode())
    sources = {*module.glob("*.go"), *(module / command[-1]).glob("*.go")}
    for file in sorted([*sources, module / "go.mod", module / "go.sum"]):
        content.update(f"\n{file.name}\n".encode() + file.read_bytes())
    return content.hexdigest()[:20]


def _toolchain(module: Path) -> str:
    """Version and platform of a Go that can build `module`."""
    wanted = _version(re.search(r"^go (\S+)$", (module / "go.mod").read_text(), re.MULTILINE)[1])
    if not shutil.which("go"):
        raise MissingToolError(f"there is no Go (1.{wanted[1]} or newer is needed)")
    asked = ["go", "env", "GOVERSION", "GOOS", "GOARCH"]
    answer = subprocess.run(
        asked, cwd="/", env=_environment(), capture_output=True, text=True, check=True, timeout=60
    )
    found = answer.stdout.split()
    if _version(found[0]) < wanted:
        raise MissingToolError(f"Go is too old ({found[0]}; 1.{wanted[1]} or newer is needed)")
    return " ".join(found)


def _version(text: str) -> tuple[int, int]:
    major, minor = re.search(r"(\d+)\.(\d+)", text).groups()
    return int(major), int(minor)


def _environment() -> dict[str, str]:
    return os.environ | {
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "",
        "GOWORK": "off",
        "GOGC": "100",  # Go's default: compilers of large packages need a gigabyte each
    }


def _run(command: list[str], module: Path, program: Path, title: str) -> None:
    """Build next to `program`, report progress on stderr, and move the result into place atomically."""
    with tempfile.TemporaryDirectory(dir=program.parent) as temporary:
        log, output = Path(temporary) / "log", Path(temporary) / "output"
        command = [*command[:2], "-o", str(output), *command[2:]]
        began = time.monotonic()
        with log.open("wb") as sink:
            process = subprocess.Popen(
                command, cwd=module, env=_environment(), stdout=sink, stderr=sink
            )
        try:
            while process.poll() is None:
                _say(f"{title}: {time.monotonic() - began:.0f} s, {_progress(log)}")
                try:
                    process.wait(PROGRESS_EVERY)
                except subprocess.TimeoutExpired:
                    continue
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        if process.returncode:
            raise BuildError(f"{title}: go build failed in {module}:\n{_complaints(log)}")
        output.replace(program)
        _say(f"{title}: done in {time.monotonic() - began:.0f} s, kept in {program.parent}")


def _progress(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    modules = sum(line.startswith("go: downloading") for line in lines)
    return f"{modules} modules downloaded, {len(lines) - modules} packages compiled"


def _complaints(log: Path) -> str:
    """The end of the log without the names of compiled packages."""
    return "\n".join(
        [line for line in log.read_text(errors="replace").splitlines() if " " in line][-20:]
    )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock of this machine: what is built in its directory is built once."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(f"waiting for another build in {path.parent}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
