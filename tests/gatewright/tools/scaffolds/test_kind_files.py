"""New kinds: the written files, rejected names, and kinds of packages."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry

from config import crds
from controller.reconcilers import planned_kinds
from controller.runtime.manager import Manager
from gatewright.cli import main
from gatewright.testing.fake_apiserver import FakeApiServer
from gatewright.tools.scaffolds.kind_files import NewKind, in_package, in_project, plural_of
from kube.resource import Resource
from tests.gatewright.packages import declare, installed
from tests.waiting import WITHIN
from webhook.policy_sets import catalogue

ROOT = Path(__file__).parents[4]
CONFIGMAP = Resource("", "v1", "configmaps", "ConfigMap")
SPROCKET = NewKind("Sprocket", "example.com", "v1", "sprockets")
LONGEST = "LongestNameOfAKindThatAnyApiServerWouldTakeInADefinitionOfIt"[:59]
WRITTEN = [
    "pyproject.toml",
    "README.md",
    "Makefile",
    "our_kinds/__init__.py",
    "our_kinds/sprocket.py",
    "tests/test_sprocket.py",
    "samples/my-sprocket.yaml",
]

TEAMS = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: labels}
spec: {policy: required-labels, params: {labels: {team: "*"}}, match: {any: [{kinds: [ConfigMap]}]}}
"""

POLICY = """\
from webhook.engine import Policy, Violation


def validate(request, params):
    if request.string("spec.message") == "bye":
        yield Violation("spec.message", "bye", "stays", "greet")


POLICY = Policy("sprocket-words", validate=validate, kinds=("Sprocket",))
"""
CASES = """\
policy: sprocket-words
cases:
  - {name: the smallest, object: {kind: Sprocket}, expect: allowed}
  - name: one that leaves
    object: {kind: Sprocket, spec: {message: bye}}
    expect: {denied: [{path: spec.message, message: "spec.message: bye; stays. Greet."}]}
---
policy: required-labels
params: {labels: {team: "*"}}
cases:
  - name: one of all kinds
    object: {kind: Sprocket}
    expect: {denied: [{path: "metadata.labels[team]", policy: required-labels}]}
"""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command line in a temporary directory; return exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        out, err = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, out, err

    return run


@pytest.fixture
def package(run: Run, tmp_path: Path) -> Iterator[Path]:
    """Scaffold a package and install it."""
    assert run("scaffold", "Sprocket", "--package", "our-kinds")[0] == 0
    declare(tmp_path / "our-kinds", sprocket="our_kinds.sprocket:SPROCKET")
    with installed(tmp_path / "our-kinds"):
        yield tmp_path / "our-kinds"


def files(directory: Path) -> set[str]:
    """Return the files below a directory."""
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def test_a_package_is_written(run: Run, tmp_path: Path) -> None:
    """The output lists each file and the next commands."""
    code, out, err = run("scaffold", "Sprocket", "--package", "our-kinds")
    assert (code, err) == (0, "")
    *named, then = out.splitlines()
    assert named == [f"wrote our-kinds/{each}" for each in WRITTEN]
    assert then.startswith("next: cd our-kinds, pip install")
    assert files(tmp_path / "our-kinds") == set(WRITTEN)


def test_a_second_kind_joins_the_package(run: Run, tmp_path: Path) -> None:
    """The files of the first kind do not change; the entry point to add is printed."""
    run("scaffold", "Sprocket", "--package", "our-kinds")
    project = (tmp_path / "our-kinds/pyproject.toml").read_text()
    code, out, err = run(
        "scaffold", "Gizmo", "--group", "toys.example.com", "--package", "our-kinds"
    )
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "wrote our-kinds/our_kinds/gizmo.py",
        "wrote our-kinds/tests/test_gizmo.py",
        "wrote our-kinds/samples/my-gizmo.yaml",
        'next: below [project.entry-points."gatewright.kinds"] in our-kinds/pyproject.toml, write',
        'gizmo = "our_kinds.gizmo:GIZMO"',
    ]
    assert (tmp_path / "our-kinds/pyproject.toml").read_text() == project


def test_a_checkout_gets_a_new_kind(run: Run, tmp_path: Path) -> None:
    """Type, plan, tests, sample and page are in the usual places."""
    for each in (
        "config/api/meta.py",
        "controller/reconcilers/__init__.py",
        "tests/controller/reconcilers/__init__.py",
    ):
        (tmp_path / each).parent.mkdir(parents=True)
        (tmp_path / each).touch()
    before = files(tmp_path)
    code, out, err = run("scaffold", "Sprocket")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1].startswith("next: make manifests")
    assert (
        files(tmp_path) - before
        == set(in_project(SPROCKET))
        == {
            "config/api/sprocket.py",
            "controller/reconcilers/sprocket.py",
            "tests/config/api/test_sprocket.py",
            "tests/controller/reconcilers/test_sprocket.py",
            "config/samples/my-sprocket.yaml",
            "docs/kinds/sprocket.md",
        }
    )


def test_nothing_is_overwritten(run: Run, tmp_path: Path) -> None:
    """If one file exists, none is written."""
    there = tmp_path / "our-kinds/samples/my-sprocket.yaml"
    there.parent.mkdir(parents=True)
    there.write_text("mine")
    expected = "our-kinds/samples/my-sprocket.yaml: already exists; nothing was written\n"
    assert run("scaffold", "Sprocket", "--package", "our-kinds") == (3, "", expected)
    assert files(tmp_path) == {"our-kinds/samples/my-sprocket.yaml"}
    assert there.read_text() == "mine"


def test_a_failed_write_removes_the_written_files(run: Run, tmp_path: Path) -> None:
    """If one file cannot be written, the files before it are deleted."""
    (tmp_path / "our-kinds").mkdir()
    (tmp_path / "our-kinds/tests").write_text("a file, where a directory should be")
    code, out, err = run("scaffold", "Sprocket", "--package", "our-kinds")
    assert (code, out, err) == (3, "", "our-kinds/tests: File exists; nothing was written\n")
    assert files(tmp_path) == {"our-kinds/tests"}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ["sprocket"],
            '"sprocket": a kind is written in CamelCase, such as Gadget, in at most 59 letters',
        ),
        (["VM"], '"VM": a kind is written in CamelCase, such as Gadget, in at most 59 letters'),
        (
            [f"{LONGEST}s"],
            f'"{LONGEST}s": a kind is written in CamelCase, such as Gadget, in at most 59 letters',
        ),
        (["Lambda"], '"Lambda": this name is already used in the code of every kind'),
        (["None"], '"None": this name is already used in the code of every kind'),
        (["Plan"], '"Plan": this name is already used in the code of every kind'),
        (["Message"], '"Message": this name is already used in the code of every kind'),
        (["Sprocket", "--group", "toys"], '"toys": a group is a domain name, such as example.com'),
        (["Sprocket", "--version", "1"], '"1": a version is written as v1, v1beta1 or v1alpha1'),
        (
            ["Sprocket", "--plural", "Sprockets"],
            "\"Sprockets\": a plural is lower-case letters, digits and '-', at most 63, such as gadgets",
        ),
        (
            ["Sprocket", "--plural", "s" * 64],
            f"\"{'s' * 64}\": a plural is lower-case letters, digits and '-', at most 63, such as gadgets",
        ),
        (["Widget"], '"Widget": the kind Widget of example.com already exists'),
        (["Gear", "--plural", "widgets"], '"Gear": the kind Widget of example.com already exists'),
        (
            ["Sprocket"],
            "this directory is not a checkout of Gatewright; use --package DIR for a package of your own",
        ),
        (
            ["Sprocket", "--package", "config"],
            '"config": Gatewright or Python already has a package of this name',
        ),
        (
            ["Sprocket", "--package", "json"],
            '"json": Gatewright or Python already has a package of this name',
        ),
        (
            ["Sprocket", "--package", "2-kinds"],
            "\"2-kinds\": a package is named in letters, digits and '-', such as our-kinds",
        ),
    ],
)
def test_an_invalid_name_is_rejected(
    run: Run, tmp_path: Path, arguments: list[str], error: str
) -> None:
    """The message describes a valid name; nothing is written."""
    code, out, err = run("scaffold", *arguments)
    assert (code, out) == (2, "")
    assert err.endswith(f"\n\nError: {error}\n")
    assert files(tmp_path) == set()


@pytest.mark.parametrize(
    ("project", "error"),
    [
        ("[project]\n", "project.name is missing"),
        ('[project]\nname = "theirs"\n', "the package theirs is missing beside it"),
        (
            "[project\n",
            "cannot be read: Expected ']' at the end of a table declaration (at line 1, column 9)",
        ),
    ],
)
def test_an_unusable_project_is_an_error(
    run: Run, tmp_path: Path, project: str, error: str
) -> None:
    """The message has the reason."""
    (tmp_path / "pyproject.toml").write_text(project)
    assert run("scaffold", "Sprocket", "--package", ".") == (3, "", f"pyproject.toml: {error}\n")


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("Sprocket", "sprockets"),
        ("Proxy", "proxies"),
        ("Key", "keys"),
        ("Box", "boxes"),
        ("Bus", "buses"),
    ],
)
def test_plurals_are_regular(kind: str, plural: str) -> None:
    """Irregular ones can be set by --plural."""
    assert plural_of(kind) == plural


def test_the_commands_know_the_kind_of_a_package(run: Run, package: Path) -> None:
    """They print its CRD, its RBAC, and the plan of its sample."""
    code, out, err = run("crds", "Sprocket")
    assert (code, err) == (0, "")
    assert yaml.safe_load(out)["metadata"]["name"] == "sprockets.example.com"
    code, out, err = run("rbac")
    assert (code, err) == (0, "")
    role, binding, *people = yaml.safe_load_all(out)
    assert [(rule["resources"], rule["verbs"]) for rule in role["rules"]] == [
        (["configmaps"], ["create", "get", "list", "patch", "watch"]),
        (["events"], ["create", "patch"]),
        (["sprockets"], ["get", "list", "watch"]),
        (["sprockets/finalizers"], ["update"]),
        (["sprockets/status"], ["patch"]),
    ]
    assert binding["subjects"] == [
        {
            "kind": "ServiceAccount",
            "name": "gatewright-controller-manager",
            "namespace": "gatewright-system",
        }
    ]
    assert [each["metadata"]["name"] for each in people] == [
        f"gatewright-sprockets.example.com-{each}" for each in ("view", "edit", "admin")
    ]
    code, out, err = run("plan", str(package / "samples/my-sprocket.yaml"))
    assert (code, err) == (0, "")
    assert yaml.safe_load(out)["data"] == {"message": "hello"}


def test_children_of_a_packages_kind_are_judged(run: Run, package: Path, tmp_path: Path) -> None:
    """They are judged with the parent: the ConfigMap's label comes from the parent."""
    (tmp_path / "policies.yaml").write_text(TEAMS)
    code, out, err = run(
        "check", "--policies", "policies.yaml", str(package / "samples/my-sprocket.yaml")
    )
    assert (code, err) == (1, "")
    finding = "labels: metadata.labels[team]: missing; the label is required."
    assert f": {finding} Add it.\n" in out


@pytest.mark.usefixtures("package")
def test_policies_can_select_a_packages_kind(
    run: Run, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The kind is found by its name, and among all kinds."""
    request.addfinalizer(catalogue.catalogue.cache_clear)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/sprocket_words.py").write_text(POLICY)
    (tmp_path / "cases.yaml").write_text(CASES)
    assert run("test", "--policies-dir", "policies", "cases.yaml") == (0, "3 cases: 3 passed\n", "")


def test_rbac_without_packages_is_an_error(run: Run) -> None:
    """The chart has the rules of Gatewright's own kinds; they can still be printed by name."""
    code, _, err = run("rbac")
    assert code == 2
    assert err.endswith(
        "Error: no installed package adds a kind; the chart has the RBAC rules for all others\n"
    )
    accounts = ["--controller-account", "maker", "--webhook-account", "judge"]
    code, out, _ = run("rbac", "Widget", "--namespace", "ours", *accounts)
    assert code == 0
    _, made_by, role, looked_up_by, *_ = yaml.safe_load_all(out)
    assert made_by["subjects"] == [{"kind": "ServiceAccount", "name": "maker", "namespace": "ours"}]
    assert looked_up_by["subjects"] == [
        {"kind": "ServiceAccount", "name": "judge", "namespace": "ours"}
    ]
    assert (
        looked_up_by["roleRef"]["name"]
        == role["metadata"]["name"]
        == "gatewright-widgets.example.com-webhook"
    )
    assert role["rules"] == [
        {"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get"]}
    ]


def test_rbac_uses_the_default_namespace(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The help shows the default; an option or the environment overrides it."""
    monkeypatch.setenv("COLUMNS", "120")
    assert " namespace Gatewright is installed in [gatewright-system]\n" in run("rbac", "--help")[1]
    namespaces = []
    for variable, options in (("", ()), ("theirs", ()), ("theirs", ("--namespace", "ours"))):
        if variable:
            monkeypatch.setenv("GATEWRIGHT_NAMESPACE", variable)
        bindings = [
            document
            for document in yaml.safe_load_all(run("rbac", "Widget", *options)[1])
            if "subjects" in document
        ]
        namespaces.append(
            {subject["namespace"] for each in bindings for subject in each["subjects"]}
        )
    assert namespaces == [{"gatewright-system"}, {"theirs"}, {"ours"}]


async def test_the_kind_of_a_package_converges(package: Path) -> None:
    """Its sample becomes ready, and a manual edit is reverted."""
    (sprocket,) = [kind for kind in planned_kinds() if kind.name == "sprocket"]
    sample = yaml.safe_load((package / "samples/my-sprocket.yaml").read_text())
    stop, changed = asyncio.Event(), asyncio.Event()
    async with FakeApiServer() as server, asyncio.timeout(WITHIN), asyncio.TaskGroup() as group:
        server.storage.listeners.append(lambda _: changed.set())
        server.define(crds.definition(sprocket.type))
        runtime = Manager(server.endpoint, CollectorRegistry(), identity="the-test")
        runtime.add_kind(sprocket)
        group.create_task(runtime.run(stop))
        server.create(
            sprocket.resource,
            sample | {"metadata": {"name": "my-sprocket", "namespace": "default"}},
        )

        async def until(holds: Callable[[], bool]) -> None:
            while not holds():
                changed.clear()
                await changed.wait()

        def status() -> object:
            return (
                (server.get(sprocket.resource, "my-sprocket", "default") or {})
                .get("status", {})
                .get("message")
            )

        await until(lambda: status() == "hello")
        edited = server.change(CONFIGMAP, "my-sprocket", {"data": {"message": "edited"}}, "default")
        await until(lambda: server.get(CONFIGMAP, "my-sprocket", "default") != edited)
        stop.set()
    assert server.get(CONFIGMAP, "my-sprocket", "default")["data"] == {"message": "hello"}  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "entry", "error"),
    [
        (
            in_package(NewKind("Widget", "example.com", "v1", "widgets"), "our-kinds", is_new=True)[
                "our_kinds/widget.py"
            ],
            "our_kinds:WIDGET",
            "the kind Widget of example.com already exists, and kind names must be unique",
        ),
        (
            "GEAR = 1",
            "our_kinds:GEAR",
            "not a PlannedKind; it must name one, such as my_package.my_module:MY_KIND",
        ),
        (
            "",
            "our_kinds:GEAR",
            "cannot be imported: AttributeError: module 'our_kinds' has no attribute 'GEAR'",
        ),
        ("GEAR = =", "our_kinds:GEAR", "{file}:1: not Python: invalid syntax"),
    ],
)
def test_an_unusable_entry_point_is_an_error(
    run: Run, tmp_path: Path, text: str, entry: str, error: str
) -> None:
    """Every command that looks for kinds reports its name."""
    (tmp_path / "our_kinds.py").write_text(text)
    declare(tmp_path, some=entry)
    where = f"entry point some ({entry}): "
    with installed(tmp_path):
        code, out, err = run("crds")
    assert (code, out, err) == (3, "", f"{where}{error.format(file=tmp_path / 'our_kinds.py')}\n")


MYPY = ("mypy", "--cache-dir", str(ROOT / ".mypy_cache"))  # left by `make lint`, if that ran
CHECKS = (
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("pytest", "-q", "-p", "no:cacheprovider"),
)


def checked(directory: Path, *command: str, paths: tuple[str, ...] = ()) -> None:
    """Run a development tool on the written files."""
    environment = {**os.environ, "PYTHONPATH": str(directory)}
    argv = [str(Path(sys.executable).with_name(command[0])), *command[1:], *paths]
    done = subprocess.run(
        argv, cwd=directory, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("letters", "scope"),
    [
        *((letters, ()) for letters in (2, 20, 30, 31, 40, 50, 59)),
        *((letters, ("--cluster-scoped",)) for letters in (2, 15, 16, 59)),
    ],
)
def test_a_name_of_any_length_fits_into_the_lines(
    run: Run, tmp_path: Path, letters: int, scope: tuple[str, ...]
) -> None:
    """Ruff accepts and would not reformat the files, here and in a package."""
    name = LONGEST[:letters]
    written = in_project(NewKind(name, "example.com", "v1", plural_of(name), bool(scope)))
    for path, text in written.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert run("scaffold", name, "--package", "our-kinds", *scope)[0] == 0
    ours = ("--config", str(ROOT / "pyproject.toml"))
    beside = (
        "--config",
        "lint.isort.known-first-party=['config', 'controller', 'gatewright', 'kube']",
    )
    here = tuple(path for path in written if path.endswith(".py"))
    checked(tmp_path, "ruff", "check", "--no-cache", *ours, *beside, paths=here)
    checked(tmp_path, "ruff", "format", "--no-cache", "--check", *ours, paths=here)
    for arguments in (("check",), ("format", "--check")):
        checked(tmp_path / "our-kinds", "ruff", *arguments, "--no-cache", ".")


@pytest.mark.controlplane
def test_a_package_passes_its_own_checks(run: Run, tmp_path: Path) -> None:
    """Ruff, mypy and its tests pass right after scaffolding, also for a kind with the longest name."""
    run("scaffold", "Sprocket", "--package", "our-kinds")
    run("scaffold", LONGEST, "--group", "toys.example.com", "--package", "our-kinds")
    run("scaffold", "Tenant", "--cluster-scoped", "--package", "our-kinds")
    for command in CHECKS:
        checked(tmp_path / "our-kinds", *command)
    checked(tmp_path / "our-kinds", *MYPY)


@pytest.mark.controlplane
def test_a_kind_in_a_checkout_passes_the_checks(run: Run, tmp_path: Path) -> None:
    """Ruff, mypy and its tests pass in a copy of the project."""
    for each in (
        "certs",
        "config",
        "controller",
        "gatewright",
        "kube",
        "webhook",
        "pyproject.toml",
    ):
        copy = shutil.copytree if (ROOT / each).is_dir() else shutil.copy
        copy(ROOT / each, tmp_path / each)
    for each in (
        "tests",
        "tests/config",
        "tests/config/api",
        "tests/controller",
        "tests/controller/reconcilers",
    ):
        (tmp_path / each).mkdir()
        (tmp_path / each / "__init__.py").touch()
    assert run("scaffold", "Sprocket")[0] == 0
    written = tuple(path for path in in_project(SPROCKET) if path.endswith(".py"))
    tests = tuple(path for path in written if path.startswith("tests/"))
    checked(tmp_path, "ruff", "check", paths=written)
    checked(tmp_path, "ruff", "format", "--check", paths=written)
    checked(tmp_path, *MYPY, paths=written)
    checked(tmp_path, "pytest", "-q", "-p", "no:cacheprovider", paths=tests)
