"""Settings and metrics of controllers run by `gatewright.runtime`, in a separate process."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.gatewright.documented import blocks

pytestmark = pytest.mark.long  # each test is a process

KUBECONFIG = """\
current-context: nobody
contexts: [{name: nobody, context: {cluster: nobody}}]
clusters: [{name: nobody, cluster: {server: "http://127.0.0.1:9"}}]
"""
PROGRAM = """
from gatewright.runtime import Result, For, run
from gears import GEAR
from widgets import WIDGET, setup

async def reconcile(request):
    return Result()

def all_of_them(runtime):
    setup(runtime)
    runtime.add_kind(GEAR)
    runtime.control("narrow", reconcile, For(WIDGET), workers=1)

run(all_of_them, metrics_listen="127.0.0.1:0", health_listen="127.0.0.1:0", {settings})
"""
SAMPLE = "controller_runtime_max_concurrent_reconciles"


@pytest.mark.parametrize(
    ("settings", "environment", "workers"),
    [("", {}, 5), ("workers=7", {}, 7), ("", {"GATEWRIGHT_WORKERS": "8"}, 8)],
    ids=["default", "argument", "environment"],
)
def test_the_workers_setting_is_the_default_for_all_controllers(
    tmp_path: Path, settings: str, environment: dict[str, str], workers: int
) -> None:
    """It applies to a hand-written controller and a kind; an explicit number overrides it."""
    for name, text in (
        ("gears.py", blocks()["Gear"]),
        ("widgets.py", blocks()["Widgets"]),
        ("all.py", PROGRAM.format(settings=settings)),
        ("kubeconfig", KUBECONFIG),
    ):
        (tmp_path / name).write_text(text)
    mine = {name: value for name, value in os.environ.items() if not name.startswith("GATEWRIGHT_")}
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "all.py")],
        env={**mine, "KUBECONFIG": str(tmp_path / "kubeconfig"), **environment},
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stderr is not None
        started = next(
            line for line in map(json.loads, process.stderr) if line["message"] == "started"
        )
        with urllib.request.urlopen(
            f"http://127.0.0.1:{started['metrics']}/metrics", timeout=10
        ) as answer:
            lines = answer.read().decode().splitlines()
        process.terminate()
        process.stderr.read()
    assert process.returncode == 0
    assert [line for line in lines if line.startswith(SAMPLE)] == [
        f'{SAMPLE}{{controller="widgets"}} {workers}.0',
        f'{SAMPLE}{{controller="gear"}} {workers}.0',
        f'{SAMPLE}{{controller="narrow"}} 1.0',
    ]
