"""Compare the verdicts on the same object of two policy sets, or of two versions of Gatewright.

The other version runs in a process of its own. A wheel is installed into a new virtual environment.
An image runs in a container of docker or podman, which sees the working directory and the files
that the command line names, read-only.
"""

import os
import shutil
import subprocess
import venv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import orjson

from config.documents import DocumentError
from gatewright.checks.check_report import SCHEMA
from gatewright.checks.project_file import SWITCH
from gatewright.outputs import InputProblem, ReportedViolation, SourceLocation, SubjectResult

UNCHANGED = "unchanged"
NEWLY_DENIED, NO_LONGER_DENIED, STILL_DENIED = "newly denied", "no longer denied", "still denied"
NEWLY_WARNED, NO_LONGER_WARNED = "newly warned", "no longer warned"
PATCHED = "patched otherwise"


def compare(old: SubjectResult, new: SubjectResult) -> SubjectResult:
    """Return a result whose violations are the differences for an object.

    Its verdict is "newly denied", "no longer denied", "still denied" (for other violations), "newly
    warned", "no longer warned", "patched otherwise" or "unchanged"; "error" if the policies of one
    side cannot decide. Only these and newly denied objects have violations of level error.
    """
    if new.verdict == "error":
        return new
    if old.verdict == "error":
        return replace(old, violations=(*old.violations, *_only_in(new, old)))
    was_denied, is_denied = (
        any(each.level == "error" for each in side.violations) for side in (old, new)
    )
    added, removed = _only_in(new, old), _only_in(old, new)
    if is_denied and not was_denied:
        return replace(new, verdict=NEWLY_DENIED, violations=tuple(added))
    quiet = tuple(replace(each, level="note") for each in added if each.level == "error")
    warned = tuple(each for each in added if each.level != "error")
    fixed = tuple(
        replace(violation, level="note", message=f"no longer: {violation.message}")
        for violation in removed
    )
    if was_denied and not is_denied:
        return replace(new, verdict=NO_LONGER_DENIED, violations=(*fixed, *warned))
    if is_denied and (quiet or any(each.level == "error" for each in removed)):
        return replace(new, verdict=STILL_DENIED, violations=(*quiet, *fixed, *warned))
    if warned or fixed:
        verdict = NEWLY_WARNED if warned else NO_LONGER_WARNED
        return replace(new, verdict=verdict, violations=(*warned, *fixed))
    if old.operations != new.operations:
        return replace(new, verdict=PATCHED, violations=())
    return replace(new, verdict=UNCHANGED, violations=(), operations=())


def _only_in(one: SubjectResult, other: SubjectResult) -> list[ReportedViolation]:
    """Return the violations of `one` that `other` lacks.

    A violation of the same policy in the same field with another limit counts as the same.
    """
    keys, others = set(map(_key, one.violations)), set(map(_key, other.violations))
    reworded = Counter(_field(each) for each in other.violations if _key(each) not in keys)
    missing = list[ReportedViolation]()
    for violation in one.violations:
        if _key(violation) not in others:
            if reworded[_field(violation)] > 0:
                reworded[_field(violation)] -= 1
            else:
                missing.append(violation)
    return missing


def _key(each: ReportedViolation) -> tuple[str, str, str]:
    return each.policy, each.action, each.message


def _field(each: ReportedViolation) -> tuple[str, str, str]:
    return each.policy, each.action, each.path


OURS = frozenset({"against", "at", "outputs", "old", "new", "manifests"})
"""The parameters of `impact` that the other version's `check` does not get as they are."""
WRONG_COMMAND_LINE = 2  # the exit code
SubjectPlace = tuple[str, str, str, str, int]


class OtherVersion:
    """The verdicts of another version, by object."""

    def __init__(self, name: str, report: Mapping[str, Any]) -> None:
        """Take the JSON report of the `check` of the version `name`."""
        self._name = name
        self._results: dict[SubjectPlace, list[SubjectResult]] = {}
        for record in report["results"]:
            result = _result(record)
            self._results.setdefault(_subject(result), []).append(result)
        self._compared = set[SubjectPlace]()
        self.problems = [
            InputProblem(f"{name}: {problem['message']}", _place(problem))
            for problem in report["problems"]
        ]

    def take(self, result: SubjectResult) -> SubjectResult | None:
        """Return the other version's result for the object of a result; None if it has none."""
        results = self._results.get(_subject(result))
        if results is None:
            return None
        self._compared.add(_subject(result))
        # A report has one of several equal results of a place.
        return results.pop(0) if len(results) > 1 else results[0]

    def only_there(self) -> Iterator[InputProblem]:
        """Yield a problem for each object that only the other version judged."""
        for key, results in self._results.items():
            if key not in self._compared:
                title = results[0].title
                yield InputProblem(f"{title}: judged only by {self._name}", results[0].place)


def judge_by_version(version: str, arguments: Sequence[str]) -> OtherVersion:
    """Return the verdicts of `gatewright check` of a version: a wheel, or an image.

    Raises DocumentError if the version cannot be installed or run, or reports no verdicts.
    """
    with TemporaryDirectory() as directory:
        if version.endswith(".whl"):
            command = [_install(version, Path(directory))]
        else:
            command = _container(version, arguments)
        done = _run([*command, "check", SWITCH, *arguments])
        if done.returncode == WRONG_COMMAND_LINE and SWITCH.encode() in done.stderr:
            # A version that does not know the switch reads no project files.
            done = _run([*command, "check", *arguments])
    try:
        return OtherVersion(Path(version).name, orjson.loads(done.stdout))
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise DocumentError(_failure(f"{version}: exit {done.returncode}", done.stderr)) from None


def check_arguments(context: click.Context, given: Sequence[str]) -> list[str]:
    """Return the arguments of a `check` by OLD that judges what an `impact` was given."""
    values, _, order = context.command.make_parser(context).parse_args(list(given))
    arguments = ["--allow-empty", "-o", "json", "--policies", values["old"]]
    for param in dict.fromkeys(order):
        if not isinstance(param, click.Option) or param.name in OURS:
            continue
        value = values[param.name]
        if param.is_flag:
            arguments.append((param.opts if value else param.secondary_opts)[0])
        else:
            for argument in value if param.multiple else [value]:
                arguments += [param.opts[-1], argument]
    # click has a value of its own, which is no tuple, for an argument that is not given.
    manifests = values["manifests"] if isinstance(values["manifests"], tuple) else ()
    return [*arguments, "--", *manifests]


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(  # noqa: S603
        command, check=False, stdin=subprocess.DEVNULL, capture_output=True
    )


def _install(wheel: str, directory: Path) -> str:
    """Install a wheel into a new virtual environment, and return the path of its command."""
    venv.create(directory, with_pip=True)
    command = [str(directory / "bin/python"), "-m", "pip", "install", "--quiet", wheel]
    done = subprocess.run(command, check=False, capture_output=True)  # noqa: S603
    if done.returncode:
        raise DocumentError(_failure(f"{wheel}: not installed", done.stderr))
    return str(directory / "bin/gatewright")


def _container(image: str, arguments: Sequence[str]) -> list[str]:
    """Return the command that runs an image with the files that the arguments name."""
    runner = shutil.which("docker") or shutil.which("podman")
    if runner is None:
        raise DocumentError(
            f"{image}: no wheel (a name that ends in .whl), and no docker or podman runs an image"
        )
    here = Path.cwd()
    named = {Path(each).resolve() for each in arguments if each != "--" and os.path.lexists(each)}
    mounted = [here, *sorted(path for path in named if not path.is_relative_to(here))]
    reads_cluster = "--kubeconfig" in arguments
    return [
        *(runner, "run", "--rm", f"--network={'host' if reads_cluster else 'none'}"),
        *(f"--user={os.getuid()}:{os.getgid()}", f"--workdir={here}"),
        *(f"--volume={path}:{path}:ro" for path in mounted),
        *(f"--env={name}" for name in sorted(os.environ) if name.startswith("GATEWRIGHT_")),
        image,
    ]


def _failure(what: str, errors: bytes) -> str:
    lines = errors.decode(errors="replace").strip().splitlines()
    return f"{what}: {lines[-1]}" if lines else what


def _subject(result: SubjectResult) -> SubjectPlace:
    place = result.place
    return result.kind, result.namespace, result.name, place.file, place.line


def _result(record: Mapping[str, Any]) -> SubjectResult:
    violations = (each for each in record["violations"] if each["policy"] != SCHEMA.name)
    return SubjectResult(
        kind=record["kind"],
        namespace=record["namespace"],
        name=record["name"],
        verdict=record["verdict"],
        place=_place(record),
        violations=tuple(
            ReportedViolation(
                policy=violation["policy"],
                message=violation["message"],
                level=violation["level"],
                action=violation["action"],
                path=violation["path"],
                place=_place(violation),
            )
            for violation in violations
        ),
        operations=tuple(record["patch"]),
    )


def _place(record: Mapping[str, Any]) -> SourceLocation:
    return SourceLocation(record["file"], record["line"], record["column"])
