"""`python -m tests.config.regenerate` writes every generated file anew (`make manifests`)."""

import subprocess
from pathlib import Path

from config.manifests import generated, plain
from controller.reconcilers import planned_kinds
from tests.controlplane.binaries import helm_binary
from webhook.server.look_ups import RESOURCES

ROOT = Path(__file__).parents[2]


def from_types() -> dict[str, str]:
    """The files made from API types, planned kinds and policies, by their path in the repository."""
    return generated(planned_kinds(), RESOURCES, (ROOT / "config/policies/production.yaml").read_text())


def from_chart(helm: Path) -> dict[str, str]:
    """The files made from the chart, which reads those of `from_types`."""
    command = [helm, "template", "gatewright", ROOT / "charts/gatewright", "--namespace", "gatewright-system"]
    return plain(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout)


def write(files: dict[str, str]) -> None:
    """Write the files, saying which are new or changed."""
    for name, text in files.items():
        path = ROOT / name
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"wrote {name}")


if __name__ == "__main__":
    write(from_types())
    write(from_chart(helm_binary()))
