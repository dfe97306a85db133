"""Modules, packages and functions that pages for developers name exist."""

import re
import subprocess
from collections.abc import Iterator
from functools import cache

import pytest

from tests.source.test_names import ROOT

PAGES = ("docs/architecture.md", "CONTRIBUTING.md")
TOP = "gatewright|controller|webhook|kube|config|certs|charts|plugins|benchmarks|tests|docs"
FILE = re.compile(r"`([\w/]+\.py)`")  # `turns.py`
PATH = re.compile(rf"\b((?:{TOP})(?:/[\w-]+)+(?:\.\w+)?)\b(?!/<|\*)")  # webhook/review, no glob
FOLDER = re.compile(r"(?<![\w/.>-])([a-z_]+/)(?=[\s`])")  # `library/`
MEMBER = re.compile(r"`([a-z_]+)\.(?!py`|txt`|toml`)(\w+)`")  # `admission.handle`
IDEA = re.compile(r"^\| `(\w+)` \|.*\| `([\w/]+\.py)` \|$", re.MULTILINE)  # a row: class and file
# A policy and a kind that a reader of CONTRIBUTING.md adds.
EXAMPLES = re.compile("host_network|gadget")


@cache
def files() -> list[str]:
    """Return the paths of all files of the repository, each with a slash before it."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=60
    )
    return [f"/{path}" for path in listed.stdout.splitlines()]


def exists(name: str) -> bool:
    """Return whether a file or a folder has a path; a module's may be without its suffix."""
    if EXAMPLES.search(name):
        return True
    ends = (f"/{name}", f"/{name}.py")
    return any(path.endswith(ends) or f"/{name.rstrip('/')}/" in path for path in files())


def defines(module: str, member: str) -> bool:
    """Return whether a module or package of the project has a member; True for a library's."""
    ours = [path for path in files() if re.search(rf"/{module}(/.*)?\.py$", path)]
    pattern = re.compile(rf"\b(?:def|class) {member}\b|^{member}\b", re.MULTILINE)
    found = (exists(f"{module}/{member}"), *(pattern.search(read(path)) for path in ours))
    return not ours or any(found)


@cache
def read(path: str) -> str:
    """Return the text of a file of the repository."""
    return (ROOT / path.lstrip("/")).read_text()


def unknown(text: str) -> Iterator[str]:
    """Yield the names in a page that do not exist in the repository."""
    for pattern in (FILE, PATH, FOLDER):
        yield from (name for name in pattern.findall(text) if not exists(name))
    for module, member in MEMBER.findall(text):
        if not defines(module, member):
            yield f"{module}.{member}"


@pytest.mark.parametrize("page", PAGES)
def test_every_name_in_a_page_exists(page: str) -> None:
    """A renamed module must be renamed in the pages, too."""
    assert sorted(unknown((ROOT / page).read_text())) == []


def test_names_that_do_not_exist_are_found() -> None:
    """Files, folders and members, in prose and in diagrams."""
    text = (
        "`nothing.py` `webhook/server/turns.py` webhook/nothing webhook/review rooms/ `library/` "
        "`review.envelope` `review.answer` `aiohttp.ClientSession` `config/api/<kind>.py`\n"
    )
    assert list(unknown(text)) == ["nothing.py", "webhook/nothing", "rooms/", "review.envelope"]


def test_each_idea_of_a_check_is_a_class_of_its_module():
    """There are at most ten, with the `Checker` below the table."""
    ideas = IDEA.findall(read("/docs/architecture.md"))
    assert 5 < len(ideas) < 10
    for name, file in ideas:
        [path] = [path for path in files() if path.endswith(f"/{file}")]
        assert f"\nclass {name}" in read(path)
