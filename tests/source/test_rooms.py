"""A package's docstring says what is in which of its modules."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.source.test_names import ROOT, packages

ONE_OF_A_SORT = {"api", "commands", "library", "outputs", "policies", "reconcilers"}
"""Packages whose modules are one of a sort each: a docstring does not list them all."""
ROOMS = re.compile(r"`([a-z][a-z_]*)`")


def rooms() -> Iterator[Path]:
    """Yield the `__init__` of each package whose docstring names modules."""
    for package in packages():
        for path in sorted((ROOT / package).rglob("__init__.py")):
            if path.parent.name not in ONE_OF_A_SORT and ROOMS.search(docstring(path)):
                yield path


def docstring(path: Path) -> str:
    """Return the docstring of a module."""
    return ast.get_docstring(ast.parse(path.read_text())) or ""


@pytest.mark.parametrize("path", list(rooms()), ids=lambda path: path.parent.name)
def test_a_docstring_names_the_modules_of_its_package(path: Path) -> None:
    """A module that is added or renamed is named there too."""
    modules = {each.stem for each in path.parent.glob("*.py") if not each.name.startswith("_")}
    assert modules - set(ROOMS.findall(docstring(path))) == set()
