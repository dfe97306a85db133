"""The project file: options of `check` that a repository has beside its manifests.

It belongs to what is checked, and may come from a stranger's pull request: it names no file outside
of the work tree, no code and no cluster.
"""

import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from config.documents import DocumentError, read_documents
from config.faults import did_you_mean
from config.presets import policy_path
from gatewright.checks.checked_tree import CheckedTree

FILE = ".gatewright.yaml"
TOML = "pyproject.toml"
SWITCH = "--no-project-file"
MAX_TOML = 64 << 10  # characters; the time of the parser grows with their square


class ProjectCommand(click.Command):
    """A command whose defaults are in the project file of the working directory."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Return a context with the defaults of the project file, if it is to be read.

        Raises UsageError as `project_defaults` does, and for a value that its option does not take.
        """
        if SWITCH in args or "--help" in args:
            return super().make_context(info_name, args, parent, **extra)
        file, defaults = project_defaults()
        extra.setdefault("default_map", defaults)
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.BadParameter as error:
            if not (error.ctx and error.param and error.param.name):
                raise
            name = error.param.name
            if error.ctx.get_parameter_source(name) is not ParameterSource.DEFAULT_MAP:
                raise
            key = next(key for key, (option, _) in KEYS.items() if option == name)
            raise click.UsageError(f"{file}: {key}: {error.message}") from None


NO_PROJECT_FILE: Callable[[Any], Any] = click.option(
    SWITCH,
    "no_project_file",
    is_flag=True,
    expose_value=False,
    help=f"do not read {FILE} or [tool.gatewright] of {TOML}",
)


def project_defaults() -> tuple[str, dict[str, Any]]:
    """Return the project file of the working directory, and the parameters of `check` that it sets.

    Raises UsageError for an unknown key or a path that it may not name, DocumentError if the file
    cannot be read.
    """
    file, written = _read()
    defaults = dict[str, Any]()
    for key, value in written.items():
        if key not in KEYS:
            raise click.UsageError(
                f"{file}: {key}: no key of a project file{did_you_mean(key, KEYS)}; what loads "
                "code or reads a cluster is named on the command line"
            )
        name, convert = KEYS[key]
        try:
            defaults[name] = convert(value)
        except (TypeError, ValueError) as error:
            raise click.UsageError(f"{file}: {key}: {error}") from None
    if file:
        defaults.setdefault("manifests", ["."])
    return file, defaults


def _read() -> tuple[str, Mapping[str, Any]]:
    """Return the name of the project file and what it says; "" and nothing without one."""
    file = Path(FILE)
    if os.path.lexists(file):
        CheckedTree.of(file).require_link(file)
        values: list[Any] = [each.value for each in read_documents(file)] or [{}]
        if len(values) > 1 or not isinstance(values[0], dict):
            raise DocumentError(f"{FILE}: a project file is one YAML object")
        if _table():
            raise DocumentError(f"{FILE}: {TOML} has [tool.gatewright], too; keep one of the two")
        return FILE, values[0]
    table = _table()
    return ("", {}) if table is None else (f"{TOML}: tool.gatewright", table)


def _table() -> dict[str, Any] | None:
    """Return [tool.gatewright] of pyproject.toml; None without it.

    Raises DocumentError if the file that has it cannot be read.
    """
    file = Path(TOML)
    if not os.path.lexists(file):
        return None
    CheckedTree.of(file).require_link(file)
    try:
        text = file.read_text("utf-8", errors="replace")
    except OSError as error:
        raise DocumentError(f"{TOML}: {error.strerror or error}") from None
    if "gatewright" not in text:
        return None
    if len(text) > MAX_TOML:
        raise DocumentError(
            f"{TOML}: larger than {MAX_TOML >> 10} KiB; write the options into {FILE}"
        )
    try:
        tools = tomllib.loads(text).get("tool", {})
    except RecursionError:
        raise DocumentError(f"{TOML}: nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        if "tool.gatewright" in text:
            raise DocumentError(f"{TOML}: not TOML: {error}") from None
        return None
    table = tools.get("gatewright") if isinstance(tools, dict) else None
    if table is not None and not isinstance(table, dict):
        raise DocumentError(f"{TOML}: tool.gatewright is not a table")
    return table


def _text(value: Any) -> str:
    if not isinstance(value, str | int | float):
        raise TypeError("must be a text")
    return str(value)


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise TypeError("must be a list")
    return [_text(each) for each in value]


def _own(name: str) -> str:
    """Return the name of a file in the work tree. Raises ValueError for another one."""
    path = Path(name)
    if not CheckedTree.of(Path()).permits_reference(path):
        raise ValueError(f"{name} is outside of the work tree; name it on the command line")
    return name


def _files(value: Any) -> list[str]:
    return [_own(each) for each in _texts(value)]


def _policies(value: Any) -> list[str]:
    """Return presets and files: a name without a file must be a preset."""
    return [each if _is_preset(each) else _own(each) for each in _texts(value)]


def _is_preset(name: str) -> bool:
    try:
        return policy_path(name) != Path(name)
    except ValueError:
        return False


def _outputs(value: Any) -> list[str]:
    outputs = _texts(value)
    for entry in outputs:
        if file := entry.partition("=")[2]:
            _own(file)
    return outputs


def _labels(value: Any) -> list[str]:
    """Return labels of namespaces as the option has them."""
    if not isinstance(value, dict):
        raise TypeError("must be an object: labels by namespace")
    return [f"{name}={_pairs(labels)}" for name, labels in value.items()]


def _pairs(labels: Any) -> str:
    if not isinstance(labels, dict):
        raise TypeError("labels must be an object")
    return ",".join(f"{key}={_text(label)}" for key, label in labels.items())


KEYS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "manifests": ("manifests", _files),
    "policies": ("policies", _policies),
    "select": ("select", _texts),
    "ignore": ("ignore", _texts),
    "namespace": ("namespace", _text),
    "namespace-labels": ("namespace_labels", _labels),
    "kube-version": ("kube_version", _text),
    "release-name": ("release_name", _text),
    "values": ("values", _files),
    "outputs": ("outputs", _outputs),
    "fail-on": ("fail_on", _text),
}
