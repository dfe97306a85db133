"""`python -m benchmarks.size`: count the statements of each package, without tests.

A statement is one of Python's syntax tree; docstrings are counted apart. The rings are those of
docs/architecture.md.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("webhook", "controller", "kube", "config", "certs", "gatewright")
SERVING_COMMANDS = frozenset(
    ["run", "webhook", "controller", "certs", "crds", "rbac", "unregister", "completion", "version"]
)
JUDGING = frozenset(["checks", "cases", "outputs", "plans", "explain"])
BESIDE = frozenset(["tools", "testing"])
RINGS = ("1 serve", "2 judge", "3 beside")


def main() -> None:
    """Print a line for each package, and the sums of the rings."""
    files, statements, docstrings = Counter[str](), Counter[str](), Counter[str]()
    for path in sources():
        module = path.relative_to(ROOT).with_suffix("").parts
        tree = ast.parse(path.read_text())
        documented = sum(1 for _ in docstrings_of(tree))
        for group in (f"{ring_of(module)}: {package_of(module)}", ring_of(module), "all"):
            files[group] += 1
            statements[group] += sum(isinstance(node, ast.stmt) for node in ast.walk(tree))
            statements[group] -= documented
            docstrings[group] += documented
    print(f"{'package':40} {'files':>6} {'statements':>11} {'with docstrings':>16}")
    for group in sorted(files):
        both = statements[group] + docstrings[group]
        print(f"{group:40} {files[group]:6} {statements[group]:11,} {both:16,}")


def sources() -> Iterator[Path]:
    """Yield the modules of the wheel."""
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def docstrings_of(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements that are texts alone: docstrings, also of attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                yield node
            case _:
                pass


def package_of(module: tuple[str, ...]) -> str:
    """Return the package of a module, two or three levels deep."""
    return "/".join(module[: 3 if module[:2] == ("gatewright", "tools") else 2][: len(module) - 1])


def ring_of(module: tuple[str, ...]) -> str:
    """Return the ring of a module."""
    if module[0] != "gatewright":
        return RINGS[0]
    if module[1] in BESIDE:
        return RINGS[2]
    is_judging = module[1] in JUDGING or (
        module[1] == "commands" and module[2] not in {*SERVING_COMMANDS, "__init__"}
    )
    return RINGS[1] if is_judging else RINGS[0]


if __name__ == "__main__":
    main()
