"""`gatewright scaffold`: write a working new kind or policy to start from."""

import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template

import click

from config import crds
from config.documents import DocumentError
from controller.reconcilers import planned_kinds
from gatewright.console.options import NamedPath
from gatewright.explain import editor_schemas
from gatewright.tools.scaffolds.kind_files import (
    NewKind,
    ScaffoldError,
    entry_point,
    in_package,
    in_project,
    package_of,
    plural_of,
)

POLICY_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
CHECKOUT = (
    "config/api/meta.py",
    "controller/reconcilers/__init__.py",
    "tests/controller/reconcilers/__init__.py",
)


@click.command
@click.argument("what", metavar="KIND | policy NAME")
@click.argument("name", required=False, metavar="")
@click.option("--group", default="example.com", help="API group [example.com]")
@click.option("--version", default="v1", help="version [v1]")
@click.option("--plural", help="name of the resource in paths [KIND's plural]")
@click.option(
    "--cluster-scoped", is_flag=True, help="a kind without a namespace, such as for tenants"
)
@click.option(
    "--package",
    type=NamedPath(path_type=Path, file_okay=False),
    metavar="DIR",
    help="directory of your own package, created if missing [Gatewright's checkout]",
)
def command(
    what: str,
    name: str | None,
    group: str,
    version: str,
    plural: str | None,
    cluster_scoped: bool,
    package: Path | None,
) -> None:
    """Write a new KIND (type, plan, tests and a sample) or a new policy NAME (module, cases).

    The files work as written and are meant to be changed. A policy goes to policies/NAME.py and
    cases/NAME.yaml, with the JSON Schema by which editors check the cases.

    In a checkout of Gatewright the kind becomes one of Gatewright's own. With --package it is added
    to a package that Gatewright finds wherever both are installed. No file is ever overwritten.
    """
    if what == "policy":
        _scaffold_policy(name)
        return
    if name is not None:
        raise click.UsageError(
            f'unexpected "{name}"; a new policy is `gatewright scaffold policy NAME`'
        )
    try:
        new = NewKind(what, group, version, plural or plural_of(what), cluster_scoped)
        _refuse_known(new)
        if package is None:
            _scaffold_here(new)
        else:
            _scaffold_package(new, package)
    except ScaffoldError as error:
        raise click.UsageError(str(error)) from None


def _scaffold_policy(name: str | None) -> None:
    if name is None or not POLICY_NAME.fullmatch(name):
        raise click.UsageError(
            "name the policy in lower-case words and dashes: gatewright scaffold policy team-labels"
        )
    from webhook.policy_sets.catalogue import catalogue

    if name in catalogue():
        raise click.UsageError(f'a policy "{name}" already exists')
    module = name.replace("-", "_")
    texts = {
        key: Template(_template(key)).substitute(name=name, module=module)
        for key in ("policy", "policy_cases")
    }
    _write(
        Path(),
        {f"policies/{module}.py": texts["policy"], f"cases/{module}.yaml": texts["policy_cases"]},
    )
    # A hidden file is not read as a case file.
    schema = Path("cases") / f".{editor_schemas.CASES}"
    schema.write_text(editor_schemas.render(())[editor_schemas.CASES])
    click.echo(f"wrote {schema}")
    click.echo("next: gatewright test --policies-dir policies cases")


def _template(name: str) -> str:
    return (files("gatewright.tools.scaffolds") / "templates" / f"{name}.txt").read_text("utf-8")


def _refuse_known(new: NewKind) -> None:
    definitions = [
        kind.definition for kind in (*crds.kinds(), *(each.type for each in planned_kinds()))
    ]
    for resource in definitions:
        if resource.kind.lower() == new.module or (resource.group, resource.plural) == (
            new.group,
            new.plural,
        ):
            raise ScaffoldError(
                f'"{new.kind}": the kind {resource.kind} of {resource.group} already exists'
            )


def _scaffold_here(new: NewKind) -> None:
    here = Path()
    if not all((here / each).is_file() for each in CHECKOUT):
        raise ScaffoldError(
            "this directory is not a checkout of Gatewright; use --package DIR for a package of "
            "your own"
        )
    _write(here, in_project(new))
    click.echo("next: make manifests (its CRD, rights and reference), make lint test")


def _scaffold_package(new: NewKind, directory: Path) -> None:
    project = directory / "pyproject.toml"
    if not project.exists():
        _write(directory, in_package(new, directory.resolve().name, is_new=True))
        click.echo(
            f"next: cd {directory}, pip install -e '.[dev]', make; then gatewright plan "
            f"samples/my-{new.module}.yaml"
        )
        return
    name = _name_in(project)
    if not (directory / package_of(name)).is_dir():
        raise DocumentError(f"{project}: the package {package_of(name)} is missing beside it")
    _write(directory, in_package(new, name, is_new=False))
    click.echo(f'next: below [project.entry-points."gatewright.kinds"] in {project}, write')
    click.echo(entry_point(new, name))


def _name_in(project: Path) -> str:
    try:
        return str(tomllib.loads(project.read_text())["project"]["name"])
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise DocumentError(f"{project}: cannot be read: {error}") from None
    except (KeyError, TypeError):
        raise DocumentError(f"{project}: project.name is missing") from None


def _write(directory: Path, files: Mapping[str, str]) -> None:
    """Write all files or none."""
    paths = {directory / path: text for path, text in files.items()}
    if there := [str(path) for path in paths if path.exists()]:
        raise DocumentError(f"{', '.join(there)}: already exists; nothing was written")
    written: list[Path] = []
    try:
        for path, text in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x") as file:
                written.append(path)
                file.write(text)
    except OSError as error:
        for path in written:
            path.unlink()
        raise DocumentError(f"{error.filename}: {error.strerror}; nothing was written") from None
    for path in written:
        click.echo(f"wrote {path}")
