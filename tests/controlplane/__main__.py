"""`python -m tests.controlplane [KUBECONFIG]`: runs a control plane until Ctrl-C."""

import argparse
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.controlplane.gobuild import BuildError, MissingToolError
from tests.controlplane.plane import ControlPlane, ControlPlaneError


def main() -> None:
    """Start a control plane, print how to reach it, and wait."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.controlplane", description="A control plane, until Ctrl-C."
    )
    parser.add_argument(
        "kubeconfig",
        type=Path,
        nargs="?",
        help="where to write its kubeconfig (default: temporary)",
    )
    kubeconfig = parser.parse_args().kubeconfig
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with (
            tempfile.TemporaryDirectory() as temporary,
            ControlPlane.start(Path(temporary)) as plane,
        ):
            if kubeconfig:
                kubeconfig.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(plane.kubeconfig, kubeconfig)
            print(
                f"ready: export KUBECONFIG={(kubeconfig or plane.kubeconfig).absolute()}",
                flush=True,
            )
            signal.pause()
    except KeyboardInterrupt:
        pass
    except (MissingToolError, BuildError, ControlPlaneError) as error:
        sys.exit(f"{error}")


main()
