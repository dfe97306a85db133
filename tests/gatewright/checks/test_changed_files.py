"""A changed file stands for every chart and kustomization that reads it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from gatewright.checks.checked_tree import ChangedFiles
from gatewright.checks.sources import read_sources
from gatewright.console.options import ChartOptions

POD = "{{apiVersion: v1, kind: Pod, metadata: {{name: {}}}}}\n"
PATCH = "{apiVersion: v1, kind: Pod, metadata: {name: base, labels: {a: b}}}\n"
TREE = {
    "base/kustomization.yaml": "resources: [pod.yaml]\n",
    "base/pod.yaml": POD.format("base"),
    "component/kustomization.yaml": "kind: Component\npatches: [{path: patch.yaml}]\n",
    "component/patch.yaml": PATCH,
    "overlay/kustomization.yaml": "resources: [../base]\ncomponents: [../component]\n"
    "configMapGenerator: [{name: data, files: [data.txt]}]\n",
    "overlay/data.txt": "a\n",
    "other/kustomization.yaml": "resources: [pod.yaml]\n",
    "other/pod.yaml": POD.format("other"),
    "chart/Chart.yaml": "apiVersion: v2\nname: chart\nversion: 1.0.0\n"
    "dependencies: [{name: part, version: 1.0.0, repository: 'file://../part'}]\n",
    "chart/templates/pod.yaml": POD.format("chart"),
    "chart/values.yaml": "a: b\n",
    "part/Chart.yaml": "apiVersion: v2\nname: part\nversion: 1.0.0\ntype: library\n",
    "part/templates/_part.tpl": "",
    "values/prod.yaml": "a: c\n",
    "plain.yaml": POD.format("plain"),
    ".hidden.yaml": POD.format("hidden"),
    "README.md": "",
}
HELM = """\
#!/bin/sh
printf -- '---\\n# Source: chart/templates/pod.yaml\\n{apiVersion: v1, kind: Pod, metadata: {name: chart}}\\n'
"""
KUSTOMIZE = """\
#!/bin/sh
printf '{apiVersion: v1, kind: Pod, metadata: {name: built}}\\n'
"""
OVERLAY = {"overlay/kustomization.yaml"}
CHART = {"chart/templates/pod.yaml"}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Write the tree, and programs that print one object."""
    monkeypatch.chdir(tmp_path)
    for name, text in TREE.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    for name, text in (("helm", HELM), ("kustomize", KUSTOMIZE)):
        program = tmp_path / ".bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/.bin:/usr/bin:/bin")


def judged(changes):
    """Return the sources of the judged documents."""
    sources = read_sources(["."], ChartOptions(values=("values/prod.yaml",)), changes)
    assert not sources.problems
    return {each.source for each in sources.judged}, sources


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, OVERLAY) for name in TREE if name.startswith(("base/", "component/", "overlay/"))),
        ("overlay/data.txt", OVERLAY),
        ("other/pod.yaml", {"other/kustomization.yaml"}),
        *((name, CHART) for name in TREE if name.startswith(("chart/", "part/", "values/"))),
        ("chart/templates/deleted.yaml", CHART),
        ("plain.yaml", {"plain.yaml"}),
        ("README.md", set()),
    ],
)
def test_a_changed_file_stands_for_what_reads_it(name, expected):
    """Whatever reads it is judged whole, by a revision and by a hook; a hook reads nothing else."""
    changed = ChangedFiles.of([name])
    assert judged(changed)[0] == expected
    assert judged(ChangedFiles(changed.files))[0] == expected
    assert {each.source for each in judged(changed)[1].documents} == expected


def test_a_hook_names_what_it_does_not_judge():
    """A hidden file is judged by no command; what is skipped elsewhere is not of interest."""
    sources = judged(ChangedFiles.of([".hidden.yaml"]))[1]
    assert (sources.judged, sources.notes) == ([], [".hidden.yaml: skipped: hidden"])


@pytest.mark.long
@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_both_names_of_a_renamed_file_and_deleted_files_are_changed():
    """What read them under their old name changes, too."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *arguments], check=True)
    Path("base/pod.yaml").rename("moved.yaml")
    Path("other/pod.yaml").unlink()
    changed = ChangedFiles.since("HEAD")
    names = {str(each.relative_to(Path.cwd())) for each in changed.files}
    assert names == {"base/pod.yaml", "moved.yaml", "other/pod.yaml"}
