"""Errors of helm and kustomize in one sentence, and archives of charts."""

import tarfile
from pathlib import Path

import pytest

from gatewright.checks.inventory import is_packaged
from gatewright.checks.programs import CompletedRun, reason_of

LOGGED = 'E1129 02:44:37.182547   25867 run.go:72] "command failed" err='


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (f'{LOGGED}"no \\"a\\" found"', 'no "a" found'),
        (
            f"{LOGGED}<\n\ttrouble with config: `\n\tpath: p.yaml\n\t`: no patch\n >",
            "trouble with config: ` path: p.yaml `: no patch",
        ),
        ("WARNING: old\nError: chart < 2 > 1\n", "chart < 2 > 1"),
    ],
)
def test_an_error_is_one_sentence(printed, reason):
    """Without the log's prefix, its quotes and its line ends."""
    assert reason_of(CompletedRun(1, b"", printed.encode()), Path("app")) == reason


@pytest.mark.parametrize(
    ("names", "is_chart"),
    [
        (["app/Chart.yaml", "app/values.yaml"], True),
        (["app/values.yaml", "app/Chart.yaml"], True),
        (["app/values.yaml"], False),
        ([], False),
    ],
)
def test_a_packaged_chart_has_a_chart_file(tmp_path, names, is_chart):
    """Helm writes it first, other programs anywhere among the first files."""
    file = tmp_path / "a.tgz"
    with tarfile.open(file, "w:gz") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name))
    assert is_packaged(file) is is_chart
