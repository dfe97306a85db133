"""The README's commands print the shown output, and all links of the docs have a target."""

import re
import shlex
from pathlib import Path

import pytest

from config.api.webapp import WebApp
from config.documents import read_documents
from gatewright.cli import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
MISTYPED = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: replica-limits}
spec:
  policy: replica-limits
  params:
    maximun: 10
"""


def shown() -> dict[str, str]:
    """Return each command line of the README, without its comment, and the output shown below it."""
    consoles = "".join(re.findall(r"```console\n(.*?)```", README, re.DOTALL)).replace("\\\n", "")
    commands = [
        shown.partition("\n") for shown in re.split(r"^\$ ", consoles, flags=re.MULTILINE) if shown
    ]
    return {command.partition(" #")[0].strip(): output for command, _, output in commands}


def called(capsys: pytest.CaptureFixture[str], command: str) -> tuple[int, str]:
    """Run a command line of the README; return its exit code and output."""
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(command)[1:])
    out, err = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, out + err


@pytest.mark.long
def test_commands_print_the_output_shown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command that needs no cluster is compared with its whole output, if shown."""
    (tmp_path / "policies.yaml").write_text(MISTYPED)
    for directory in ("config", "docs", "tests"):
        (tmp_path / directory).symlink_to(ROOT / directory)
    monkeypatch.chdir(tmp_path)
    ran = []
    for command, output in shown().items():
        if command.startswith("gatewright") and "--kubeconfig" not in command:
            code, said = called(capsys, command)
            assert said == (output or said), command
            ran.append((" ".join(command.split()[1:2]), code))
    assert ran == [("check", 1), ("test", 0), ("plan", 0), ("check", 3)]
    findings = re.findall(r"^  docs/shop\.yaml:\d+: (.+)$", README, re.MULTILINE)
    denied = f"denied the request: {len(findings)} violations\n" + "".join(
        f"- {finding}\n" for finding in findings
    )
    assert shown()["kubectl apply -n production -f shop.yaml"].endswith(denied)


def test_kubectl_shows_the_columns_of_the_kind() -> None:
    """The columns are those of the running sample."""
    (sample,) = read_documents(ROOT / "config/samples/my-webapp.yaml")
    head, line = (re.split(" {2,}", each) for each in shown()["kubectl get webapps"].splitlines())
    assert head == [
        "NAME",
        *(each.name.upper() for each in WebApp.definition.columns if not each.wide),
    ]
    spec = sample.value["spec"]
    replicas = str(spec["replicas"])
    assert line[:-1] == [
        sample.value["metadata"]["name"],
        "Running",
        replicas,
        replicas,
        spec["image"],
    ]


def test_the_requirements_are_those_of_the_project() -> None:
    """Versions, and the make targets."""
    needed = {
        "Python": ("pyproject.toml", r'requires-python = ">=(\d+\.\d+)"'),
        "Kubernetes": ("charts/gatewright/Chart.yaml", r'kubeVersion: ">=(\d+\.\d+)'),
        "Go": ("tests/controlplane/go.mod", r"^go (\d+\.\d+)"),
    }
    for name, (file, version) in needed.items():
        (found,) = re.findall(version, (ROOT / file).read_text(), re.MULTILINE)
        assert re.findall(rf"\b{name} (\d+\.\d+)", README) == [found]
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"(?:^\$ |`)make ([a-z-]+)", README, re.MULTILINE)) <= set(targets)


def test_links_have_a_target() -> None:
    """Each link of each page leads to an existing file, directory or heading."""
    assert [
        (str(page.relative_to(ROOT)), link)
        for page in PAGES
        for link in links(page)
        if is_dead(page, link)
    ] == []


def links(page: Path) -> list[str]:
    """Return the link targets of a page within the project."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    # Code holds no link, but a pattern may look like one; the text of a link may be code.
    prose = re.sub(r"`[^`\n]*`", "code", text)
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", prose) if "://" not in link]


def is_dead(page: Path, link: str) -> bool:
    """Return whether the file or heading is missing."""
    path, _, anchor = link.partition("#")
    there = (page.parent / path) if path else page
    if not anchor or not there.exists():
        return not there.exists()
    headings = re.findall(r"^#+ (.+)$", there.read_text(), re.MULTILINE)
    return anchor not in {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings
    }
