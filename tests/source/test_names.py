"""One name, one meaning: each class and alias name is defined once across all packages."""

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def packages() -> list[str]:
    """Return the packages of the wheel."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    built: list[str] = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    return built


def defined(module: ast.Module) -> Iterator[str]:
    """Yield the names of a module's classes and aliases: assigned names that are no constants."""
    for statement in module.body:
        match statement:
            case ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)]) if is_camel_case(name):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name)) if is_camel_case(name):
                yield name
            case _:
                pass


def is_camel_case(name: str) -> bool:
    """Return whether a name is written as classes are."""
    return name.lstrip("_")[:1].isupper() and not name.isupper()


def test_a_class_or_alias_is_defined_once() -> None:
    """If two packages need the same word, their names must differ, or one imports the other's."""
    places = defaultdict(list)
    for package in (*packages(), "plugins"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for name in defined(ast.parse(path.read_text())):
                places[name].append(str(path.relative_to(ROOT)))
    several = {name: where for name, where in places.items() if len(where) > 1}
    assert several == {}
