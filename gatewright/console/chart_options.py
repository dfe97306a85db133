"""The options of `check` and `impact` for rendering Helm charts."""

from collections.abc import Callable, Iterator
from functools import update_wrapper
from typing import Any, NamedTuple

import click

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
