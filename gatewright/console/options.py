"""Settings as command-line options: names, help and defaults come from the settings model.

With the options of `check` and `impact` for rendering Helm charts.
"""

import os
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import update_wrapper
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.core import ParameterSource
from pydantic.fields import FieldInfo

from config.faults import FaultsError
from config.presets import policy_path
from config.settings import PREFIX, Settings, load_settings
from controller.reconcilers import added_kinds

Command = Callable[..., Any]


class NamedPath(click.Path):
    """A path that must not be empty: "" often comes from an unset variable in a script.

    Whether it can be read is known when it is read: an unreadable file hides no other.
    """

    def __init__(self, **options: Any) -> None:
        """Take the options of click's paths."""
        super().__init__(readable=False, **options)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; an empty one is a usage error."""
        if value == "":
            self.fail("an empty name", param, ctx)
        return super().convert(value, param, ctx)


def future(_: click.Context, __: click.Parameter, date: datetime | None) -> datetime | None:
    """Return a date with its time zone; one that is over is a usage error."""
    date = date and date.replace(tzinfo=UTC)
    if date is not None and date <= datetime.now(UTC):
        raise click.BadParameter(f"{date:%Y-%m-%d} is over")
    return date


class PolicyPath(click.ParamType[Path]):
    """A policy set: the name of a preset, or a file or directory."""

    name = "policies"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; a name that is neither a preset nor a path is a usage error."""
        try:
            return policy_path(NamedPath().convert(value, param, ctx))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Namespace(click.ParamType[str]):
    """The name of a namespace. An invalid one is an error: no policy would apply there."""

    name = "namespace"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name; a name that Kubernetes rejects is a usage error."""
        if not NAMESPACE_NAME.fullmatch(value):
            self.fail(
                f'"{value}" is not a valid name of a namespace: at most 63 lower-case letters, '
                "digits and '-'",
                param,
                ctx,
            )
        return value


FILE = NamedPath(path_type=Path)
NAMESPACE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
PATHS = (
    "policies",
    "policies_dir",
    "kubeconfig",
    "tls_cert",
    "tls_key",
    "client_ca",
    "record_reviews",
    "registry_config",
    "registry_ca",
)
CLUSTER = ("kubeconfig", "context")
REGISTRIES = ("registry_config", "registry_ca", "insecure_registries")
POLICIES = ("policies_dir", "pod_kinds")

INSTALLED_IN = click.option(  # for commands whose --namespace means something else
    "--installed-in",
    "home",
    type=Namespace(),
    metavar="NAMESPACE",
    help="namespace that Gatewright is installed in, with its exceptions and its controller's "
    "account "
    "[gatewright-system]",
)

REGISTRY_ACCESS = click.option(
    "--registry-access",
    is_flag=True,
    help="read images from their registries for policies, which cannot decide without",
)

REVIEWS = click.option(
    "--reviews", type=FILE, metavar="FILE", help="recorded reviews, or an audit log"
)


class _LabelsOfNamespaces(click.ParamType[tuple[str, dict[str, str]]]):
    """Labels of a namespace: NAMESPACE=KEY=VALUE,KEY=VALUE, or NAMESPACE= for none."""

    name = "NS=KEY=VALUE,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        namespace, equals, text = value.partition("=")
        pairs = [each.partition("=") for each in text.split(",") if each]
        if not (namespace and equals) or not all(key and between for key, between, _ in pairs):
            self.fail(f'"{value}" is not of the form NAMESPACE=KEY=VALUE,KEY=VALUE', param, ctx)
        Namespace().convert(namespace, param, ctx)
        return namespace, {key: label for key, _, label in pairs}


def names_namespace() -> bool:
    """Return whether the command line of the running command has --namespace."""
    source = click.get_current_context().get_parameter_source("namespace")
    return source is click.core.ParameterSource.COMMANDLINE


NAMESPACE = click.option(
    "-n",
    "--namespace",
    type=Namespace(),
    default="default",
    help="namespace for objects without one [default]",
)
NAMESPACE_LABELS = click.option(
    "--namespace-labels",
    type=_LabelsOfNamespaces(),
    multiple=True,
    callback=lambda _, __, pairs: dict(pairs),
    help="labels of a namespace whose manifest is not among the MANIFESTs; may be repeated",
)


def settings_options(*names: str, shares_file: bool = False) -> Callable[[Command], Command]:
    """Add options for these settings and `--config` to a command, which takes Settings.

    With `shares_file`, the file may have settings that only the other processes use.
    """
    used = Settings.model_fields if shares_file else names

    def decorate(command: Command) -> Command:
        def run_with_settings(*args: Any, config: Path | None, **options: Any) -> Any:
            source = click.get_current_context().get_parameter_source
            flags = {name: options.pop(name) for name in names if _is_given(name, source(name))}
            for name in names:
                options.pop(name, None)
            try:
                settings = load_settings(flags, config, used=used)
                take_in(settings)
                return command(settings, *args, **options)
            except FaultsError as error:  # some settings are checked only when they are used
                raise click.UsageError(str(error)) from None

        wrapped: Command = update_wrapper(run_with_settings, command)
        wrapped = click.option(
            "--config", type=FILE, metavar="FILE", help="settings file: YAML, same names"
        )(wrapped)
        for name in reversed(names):
            wrapped = _option(name, Settings.model_fields[name])(wrapped)
        return wrapped

    return decorate


def _is_given(name: str, source: ParameterSource | None) -> bool:
    """Whether an option is on the command line, or in a project file and not in the environment."""
    if source is ParameterSource.DEFAULT_MAP:
        return f"{PREFIX}{name.upper()}" not in os.environ
    return source is ParameterSource.COMMANDLINE


def take_in(settings: Settings) -> None:
    """Register a team's own policies and kinds, before policy sets are read."""
    if not (settings.pod_kinds or settings.policies_dir or added_kinds()):
        return
    # Imported here: most teams have no own kinds, and a controller may not judge.
    from webhook.engine.kinds import add_kind, add_pod_kind
    from webhook.policy_sets.catalogue import add_directory

    for _, kind in added_kinds():
        add_kind(kind.type.definition)
    for text in settings.pod_kinds:
        try:
            add_pod_kind(text)
        except ValueError as error:
            raise click.UsageError(f"--pod-kinds: {error}") from None
    for directory in settings.policies_dir:  # after the kinds, which policies may name
        add_directory(directory)


def _option(name: str, field: FieldInfo) -> Callable[[Command], Command]:
    flag = f"--{name.replace('_', '-')}"
    shown = shown_default(field.default)
    help = f"{field.description}{f' [{shown}]' if shown else ''}"
    if isinstance(field.default, bool):
        return click.option(f"{flag}/--no-{flag[2:]}", name, default=field.default, help=help)
    several = isinstance(field.default, list)
    path = NamedPath() if name in PATHS else None
    return click.option(
        flag,
        name,
        type=path,
        multiple=several,
        metavar=_metavar(name, field),
        help=help,
        default=None,
    )


def _metavar(name: str, field: FieldInfo) -> str:
    if name.endswith("listen"):
        return "HOST:PORT"
    if isinstance(field.default, timedelta):
        return "DURATION"
    if isinstance(field.default, int | float):
        return "NUMBER"
    return "PATH" if name in PATHS else "URL" if name.endswith("url") else "NAME"


def shown_default(default: Any) -> str:
    """Return a default as it is written on the command line; "" for None and for switches."""
    if isinstance(default, timedelta):
        return f"{default.total_seconds():g}s"
    if isinstance(default, tuple):
        return f"{default[0] or ''}:{default[1]}"
    return "" if default in (None, "", []) or isinstance(default, bool) else str(default)


CHARTS = {  # options of `helm template`: metavar and help
    "values": ("FILE", "values for charts; may be repeated"),
    "set": ("KEY=VALUE", "a value for charts; may be repeated"),
    "kube_version": ("VERSION", "version of Kubernetes that charts are rendered for"),
    "release_name": ("NAME", "release that charts are rendered as [release-name]"),
}


class ChartOptions(NamedTuple):
    """The options of `helm template` that charts are rendered with."""

    namespace: str = "default"
    values: tuple[str, ...] = ()
    set: tuple[str, ...] = ()
    kube_version: str | None = None
    release_name: str = "release-name"

    @property
    def arguments(self) -> Iterator[str]:
        """The arguments of `helm template` after the chart."""
        yield from ("--namespace", self.namespace)
        for value in self.values:
            yield from ("--values", value)
        for setting in self.set:
            yield from ("--set", setting)
        if self.kube_version is not None:
            yield from ("--kube-version", self.kube_version)


def chart_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for rendering charts to a command, which takes ChartOptions."""

    def with_charts(*args: Any, **options: Any) -> Any:
        given = {name: options.pop(name) for name in CHARTS}
        charts = ChartOptions(
            options["namespace"], **{name: each for name, each in given.items() if each}
        )
        return command(*args, charts=charts, **options)

    wrapped: Callable[..., Any] = update_wrapper(with_charts, command)
    for name, (metavar, help) in reversed(CHARTS.items()):
        several = name in ("values", "set")
        flag = f"--{name.replace('_', '-')}"
        wrapped = click.option(flag, name, metavar=metavar, multiple=several, help=help)(wrapped)
    return wrapped
