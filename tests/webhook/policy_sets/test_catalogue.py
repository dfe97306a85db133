"""A team's own policies: loaded from a directory or an installed package, or rejected with an error."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.modules import ModuleError
from gatewright.cli import main
from webhook.policy_sets import catalogue as module
from webhook.policy_sets.catalogue import add_directory, catalogue

GOOD = '''\
"""Pods have an owner."""

from gatewright.policy import Params, Policy, Violation


def validate(request, params):
    """Return no violations."""
    if request.fields("metadata").fields("labels").string("team") is None:
        yield Violation("metadata.labels", "team missing", "pods belong to a team", "add the label")


POLICY = Policy("team-labels", validate=validate, kinds="pods")
'''


@pytest.fixture(autouse=True)
def own() -> Iterator[None]:
    """A catalogue for one test, which forgets the modules that the test adds to it."""
    catalogue.cache_clear()
    yield
    catalogue.cache_clear()
    for name in [name for name in sys.modules if name.startswith((module.TEAM, "team_labels"))]:
        del sys.modules[name]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a directory with one policy."""
    (tmp_path / "team_labels.py").write_text(GOOD)
    return tmp_path


def test_policies_of_a_directory_are_in_the_catalogue(directory: Path) -> None:
    """Files that begin with an underscore, and other file types, are skipped."""
    ours = set(catalogue())
    (directory / "_shared.py").write_text("1/0")
    (directory / "README.md").write_text("no policy")
    add_directory(directory)
    assert set(catalogue()) - ours == {"team-labels"}
    assert catalogue()["team-labels"].documentation == "Pods have an owner."


def test_modules_of_a_directory_share_helpers(directory: Path) -> None:
    """Modules with an underscore are imported relatively, as in a package."""
    (directory / "_words.py").write_text('RULE = "pods belong to a team"\n')
    shared = GOOD.replace("from gatewright", "from ._words import RULE\nfrom gatewright", 1)
    (directory / "team_labels.py").write_text(shared.replace('"pods belong to a team"', "RULE"))
    add_directory(directory)
    assert catalogue()["team-labels"].name == "team-labels"


def test_directories_have_helpers_of_their_own(tmp_path: Path) -> None:
    """Two teams may both have a `_words.py`."""
    for team in ("shop", "search"):
        (tmp_path / team).mkdir()
        (tmp_path / team / "_words.py").write_text(f'NAME = "{team}-labels"\n')
        module = GOOD.replace("from gatewright", "from ._words import NAME\nfrom gatewright", 1)
        (tmp_path / team / f"{team}_labels.py").write_text(module.replace('"team-labels"', "NAME"))
        add_directory(tmp_path / team)
    assert {"shop-labels", "search-labels"} <= catalogue().keys()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("def validate(:\n", ":1: not Python: invalid syntax"),
        ("\nx = (\n", ":2: not Python: '(' was never closed"),
        (
            "import a_module_that_is_not_there\n",
            ": cannot be imported: ModuleNotFoundError: No module named 'a_module_that_is_not_there'",
        ),
        (
            "from gatewright.policy import Polcy\n",
            ": cannot be imported: ImportError: cannot import name 'Polcy' from 'gatewright.policy' ({policy})",
        ),
        ("POLICY = Polcy()\n", ": cannot be imported: NameError: name 'Polcy' is not defined"),
        ("1 / 0\n", ": cannot be imported: ZeroDivisionError: division by zero"),
        ("raise RuntimeError('no')\n", ": cannot be imported: RuntimeError: no"),
        ("raise Exception('no')\n", ": cannot be imported: Exception: no"),
        ("raise SystemExit(0)\n", ": cannot be imported: SystemExit: 0"),
        (
            "open('/no/such/file')\n",
            ": cannot be imported: FileNotFoundError: [Errno 2] No such file or directory: '/no/such/file'",
        ),
        ("", ": declares no POLICY"),
        ("POLICY = 'team-labels'\n", ": declares no POLICY"),
        (
            GOOD.replace('"team-labels"', '"teams"'),
            ': declares the policy "teams"; a policy is named like its module',
        ),
        (
            GOOD.replace('kinds="pods"', 'kinds="pod"'),
            ": cannot be used: pod is neither a known kind nor a set of kinds: "
            "pods, scalable, namespaced, all, exec, scale",
        ),
        (
            GOOD.replace('kinds="pods"', 'kinds=("Pods",)'),
            ": cannot be used: Pods is neither a known kind nor a set of kinds: "
            "pods, scalable, namespaced, all, exec, scale",
        ),
        (
            GOOD.replace("validate=validate, ", ""),
            ": cannot be used: it neither validates nor mutates",
        ),
    ],
    ids=[
        *(
            "a syntax error",
            "a bracket left open",
            "a missing module",
            "a misspelt import",
            "a misspelt name",
        ),
        *(
            "a failure",
            "an error of its own",
            "any error",
            "an exit",
            "a missing file",
            "nothing",
            "a text",
            "another name",
        ),
        *("a set of kinds that is none", "a kind that is none", "no function"),
    ],
)
def test_an_invalid_module_is_an_error_with_its_file(
    directory: Path, content: str, told: str
) -> None:
    """The error is one line, whatever the module does."""
    file = directory / "team_labels.py"
    file.write_text(content)
    with pytest.raises(ModuleError) as error:
        add_directory(directory)
    from gatewright import policy

    assert str(error.value) == f"{file}{told.format(policy=policy.__file__)}"


def test_a_duplicate_name_is_rejected(directory: Path) -> None:
    """The name of a built-in policy, and of another policy in the directory."""
    file = directory / "replica_limits.py"
    file.write_text(GOOD.replace("team-labels", "replica-limits"))
    with pytest.raises(
        ModuleError, match=r'replica_limits\.py: a policy "replica-limits" already exists$'
    ):
        add_directory(directory)
    file.unlink()
    add_directory(directory)
    with pytest.raises(
        ModuleError, match=r'team_labels\.py: a policy "team-labels" already exists$'
    ):
        add_directory(directory)
    assert catalogue()["replica-limits"].documentation.startswith("Workloads have")


def test_a_directory_without_policies_is_rejected(tmp_path: Path) -> None:
    """It is empty or does not exist: a misspelt path must not be silent."""
    missing = {
        tmp_path: "no policy modules (*.py) in this directory",
        tmp_path / "not-there": "no such directory",
    }
    for path, said in missing.items():
        with pytest.raises(ModuleError) as error:
            add_directory(path)
        assert str(error.value) == f"{path}: {said}"


def installed(directory: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """Install a package that declares an entry point."""
    metadata = directory / "team-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: team\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[gatewright.policies]\n{name} = {value}\n")
    monkeypatch.syspath_prepend(directory)


def test_policies_of_an_installed_package_are_in_the_catalogue(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are found by entry point, without a flag."""
    installed(directory, monkeypatch, "team_labels", "team_labels")
    assert catalogue()["team-labels"].name == "team-labels"
    assert "replica-limits" in catalogue()


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        (
            "team_labels",
            "team_label",
            "cannot be imported: ModuleNotFoundError: No module named 'team_label'",
        ),
        (
            "team_labels",
            "team_labels:NONE",
            "cannot be imported: AttributeError: module 'team_labels' has no attribute 'NONE'",
        ),
        (
            "teams",
            "team_labels",
            'declares the policy "team-labels"; a policy is named like its module',
        ),
        ("json", "json", "declares no POLICY"),
    ],
)
def test_an_invalid_entry_point_is_an_error(
    directory: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str
) -> None:
    """The error has its name, its target and the reason."""
    installed(directory, monkeypatch, name, value)
    with pytest.raises(ModuleError) as error:
        catalogue()
    assert str(error.value) == f"entry point {name} ({value}): {told}"


@pytest.mark.parametrize(
    ("text", "code", "printed", "told"),
    [
        (GOOD, 0, "Pods have an owner.", ""),
        (
            "1 / 0\n",
            3,
            "",
            "{}/team_labels.py: cannot be imported: ZeroDivisionError: division by zero\n",
        ),
    ],
    ids=["good", "no policy"],
)
def test_explain_shows_policies_of_a_directory(
    directory: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    code: int,
    printed: str,
    told: str,
) -> None:
    """An invalid module is one line without a traceback."""
    (directory / "team_labels.py").write_text(text)
    with pytest.raises(SystemExit) as ended:
        main(["explain", "--policies-dir", str(directory), "team-labels"])
    out, err = capsys.readouterr()
    assert (ended.value.code, err) == (code, told.format(directory))
    assert printed in out
    assert bool(out) == bool(printed)
