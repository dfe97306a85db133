"""One name, one meaning: a class is defined once, a function is a verb, a variable what it holds."""

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# fmt: off
PARTICIPLES = {
    "begun", "bound", "built", "chosen", "done", "drawn", "found", "given", "gone", "held",
    "hidden", "kept", "known", "left", "lost", "made", "meant", "said", "seen", "sent",
    "shown", "taken", "thrown", "told", "written",
}
# fmt: on
PUBLIC = {
    "controller/reconcilers/labels.py: inherited",  # gatewright.kind's
    "controller/runtime/workqueue.py: done",  # client-go's Done
    "webhook/engine/violation.py: shown",  # gatewright.policy's
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
Statements = list[tuple[str, ast.AST]]


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


@pytest.fixture(scope="module")
def modules() -> list[tuple[str, ast.Module]]:
    """Return each module of the packages, by its path."""
    return [
        (str(path.relative_to(ROOT)), ast.parse(path.read_text()))
        for package in (*packages(), "plugins")
        for path in sorted((ROOT / package).rglob("*.py"))
    ]


@pytest.fixture(scope="module")
def statements(modules: list[tuple[str, ast.Module]]) -> Statements:
    """Return each function, loop and comprehension, with the path of its module."""
    return [
        (path, node)
        for path, module in modules
        for node in ast.walk(module)
        if isinstance(node, (*FUNCTIONS, *LOOPS))
    ]


def loop_targets(node: ast.AST) -> list[ast.expr]:
    """Return what a loop, or a comprehension over several lines, assigns to."""
    match node:
        case ast.For(target=target) | ast.AsyncFor(target=target):
            return [target]
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            several = node.end_lineno != node.lineno
            return [each.target for each in node.generators] if several else []
        case _:
            return []


def test_a_class_or_alias_is_defined_once(modules: list[tuple[str, ast.Module]]) -> None:
    """If two packages need the same word, their names must differ, or one imports the other's."""
    places = defaultdict(list)
    for path, module in modules:
        for name in defined(module):
            places[name].append(path)
    several = {name: where for name, where in places.items() if len(where) > 1}
    assert several == {}


def test_a_loop_variable_says_what_it_holds(statements: Statements) -> None:
    """Such as `container` or `policy`; `each` stands in comprehensions of one line alone."""
    unnamed = [
        f"{path}:{target.lineno}: {name.id}"
        for path, node in statements
        for target in loop_targets(node)
        for name in ast.walk(target)
        if isinstance(name, ast.Name) and name.id in ("each", "found")
    ]
    assert unnamed == []


def is_participle(name: str) -> bool:
    """Return whether a name is a participle alone, such as `parsed`, `_written`."""
    word = name.strip("_")
    return word in PARTICIPLES or (
        word.endswith("ed") and not word.endswith("eed") and "_" not in word
    )


def is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function is read as an attribute, whose name is no verb."""
    return any("property" in ast.unparse(decorator) for decorator in function.decorator_list)


def test_a_function_is_a_verb(statements: Statements) -> None:
    """Such as `parse` or `render_all`; a participle alone (`parsed`) does not say what it does."""
    participles = {
        f"{path}: {function.name}"
        for path, function in statements
        if isinstance(function, FUNCTIONS)
        and is_participle(function.name)
        and not is_property(function)
    }
    assert participles == PUBLIC
