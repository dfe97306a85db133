"""`python -m tests.recording FILE`: run the commands on a real API server, and draw their output."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.controlplane.cluster import ROOT, running
from tests.pseudo_terminal import on_a_terminal
from tests.recording.terminal import COLUMNS, drawn

TITLE = "kubectl apply is denied with every violation and its fix; gatewright check shows the same, and a diff"
COMMANDS = (
    "kubectl apply -n production -f docs/shop.yaml",
    "gatewright check --policies production -n production --diff docs/shop.yaml",
)


def main() -> None:
    """Start a cluster, and write the SVG."""
    (file,) = map(Path, sys.argv[1:])
    lines = list[str]()
    with running() as (plane, _):
        path = os.pathsep.join(
            (str(plane.binaries["kubectl"].parent), str(ROOT / ".venv/bin"), os.environ["PATH"])
        )
        environment = {**os.environ, "KUBECONFIG": str(plane.kubeconfig), "PATH": path}
        environment.pop("NO_COLOR", None)
        for command in COMMANDS:
            lines += [f"\x1b[1m$ {command}\x1b[0m", *printed(command, environment), ""]
    file.write_text(drawn(TITLE, lines))


def printed(command: str, environment: Mapping[str, str]) -> list[str]:
    """Return the lines that a command prints on a terminal."""
    code, shown = on_a_terminal(command.split(), ROOT, environment, COLUMNS)
    if code != 1:
        sys.exit(f"{command}: exit code {code}, where 1 is expected")
    return shown.splitlines()


if __name__ == "__main__":
    main()
