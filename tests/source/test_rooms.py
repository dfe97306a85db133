"""A package's docstring names all of its modules, and no module is too long."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.source.test_names import ROOT, packages

PACKAGES_OF_SIMILAR_MODULES = {"api", "commands", "library", "outputs", "policies", "reconcilers"}
"""Packages of many similar modules, which the docstring does not list."""
COMMAND = (
    "command"  # the module of a tool's command, which `gatewright.tools` names for all of them
)
LONGEST = 400  # lines of a module
MODULE_NAME = re.compile(r"`([a-z][a-z_]*)`")


def packages_with_overview() -> Iterator[Path]:
    """Yield the `__init__` of each package whose docstring names modules."""
    for package in packages():
        for path in sorted((ROOT / package).rglob("__init__.py")):
            if path.parent.name not in PACKAGES_OF_SIMILAR_MODULES and MODULE_NAME.search(
                docstring(path)
            ):
                yield path


def docstring(path: Path) -> str:
    """Return the docstring of a module."""
    return ast.get_docstring(ast.parse(path.read_text())) or ""


@pytest.mark.parametrize("path", list(packages_with_overview()), ids=lambda path: path.parent.name)
def test_a_docstring_names_the_modules_of_its_package(path: Path) -> None:
    """A package's docstring names every module, so a new or renamed module must be added."""
    modules = {each.stem for each in path.parent.glob("*.py") if not each.name.startswith("_")}
    assert modules - {COMMAND} - set(MODULE_NAME.findall(docstring(path))) == set()


def test_no_module_is_too_long() -> None:
    """A module does one job; above this length it has several."""
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text().splitlines())
        for package in packages()
        for path in (ROOT / package).rglob("*.py")
    }
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST} == {}
