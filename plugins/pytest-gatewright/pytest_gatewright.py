"""Collect case files as pytest tests: `gatewright test -o json` runs once; each case is an item."""

import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

REPORT = pytest.StashKey[dict[str, Any]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the settings."""
    parser.addini(
        "gatewright_cases",
        "case files of Gatewright, or directories of them",
        type="paths",
        default=[],
    )
    parser.addini(
        "gatewright_options", "further options of `gatewright test`", type="args", default=[]
    )
    parser.addini("gatewright_command", "how Gatewright is called", default="gatewright")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Reject a path that does not exist: none of its cases would be collected."""
    missing = [str(each) for each in session.config.getini("gatewright_cases") if not each.exists()]
    if missing:
        raise pytest.UsageError(
            f"gatewright_cases: {', '.join(missing)}: no such file or directory"
        )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a YAML file that `gatewright_cases` names, or that is in one of its directories."""
    cases: list[Path] = parent.config.getini("gatewright_cases")
    is_named = any(file_path == each or each in file_path.parents for each in cases)
    if (
        not is_named
        or file_path.suffix.lower() not in (".yaml", ".yml", ".json")
        or file_path.name.startswith(".")
    ):
        return None
    return GatewrightFile.from_parent(parent, path=file_path)


class GatewrightFile(pytest.File):
    """One case file."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the cases of the file. An unusable file is a collection error."""
        for result in _results(self.config, self.path):
            yield GatewrightItem.from_parent(self, name=result["name"], result=result)


class GatewrightItem(pytest.Item):
    """One case, which has already run."""

    def __init__(self, *, result: dict[str, Any], **keywords: Any) -> None:
        super().__init__(**keywords)
        self._result = result

    def runtest(self) -> None:
        """Fail with the differences."""
        if self._result["verdict"] != "passed":
            raise CaseFailedError([each["message"] for each in self._result["violations"]])

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the differences, one per line."""
        if isinstance(excinfo.value, CaseFailedError):
            lines = "\n".join(f"  {each}" for each in excinfo.value.differences)
            return f"{self.path}:{self._result['line']}: {self.name}\n{lines}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the file and line of the case."""
        return self.path, self._result["line"] - 1, self.name


class CaseFailedError(Exception):
    """A case with another result than expected."""

    def __init__(self, differences: list[str]) -> None:
        super().__init__("\n".join(differences))
        self.differences = differences


def _results(config: pytest.Config, path: Path) -> list[dict[str, Any]]:
    """Return the results of one file; the command runs once for all files.

    Raises CollectError if it cannot be used.
    """
    if REPORT not in config.stash:
        config.stash[REPORT] = _run(config)
    report, here = config.stash[REPORT], str(path)
    problems = [each for each in report["problems"] if each["file"] == here]
    if problems:
        raise pytest.Collector.CollectError(
            "\n".join(f"{here}:{each['line']}: {each['message']}" for each in problems)
        )
    if found := [each for each in report["results"] if each["file"] == here]:
        return found
    raise pytest.Collector.CollectError(
        f"{here}: no cases; run `gatewright test {here}` to see why"
    )


def _run(config: pytest.Config) -> dict[str, Any]:
    """Return the report of `gatewright test -o json` on all case files.

    Raises UsageError if there is none.
    """
    paths = [str(each) for each in config.getini("gatewright_cases")]
    command = [*shlex.split(config.getini("gatewright_command")), "test", "-o", "json"]
    command += [*config.getini("gatewright_options"), *paths]
    try:
        ended = subprocess.run(  # noqa: S603
            command, cwd=config.rootpath, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise pytest.UsageError(
            f"gatewright_command: {command[0]} cannot be run: {error.strerror}"
        ) from None
    try:
        report: dict[str, Any] = json.loads(ended.stdout)
    except json.JSONDecodeError:
        raise pytest.UsageError(
            f"{shlex.join(command)} failed:\n{ended.stderr or ended.stdout}"
        ) from None
    return report
