"""`python -m tests.node.cluster KUBECONFIG`: runs a cluster of one real node with Gatewright until Ctrl-C."""

import argparse
import shutil
import signal
import sys
import time
from pathlib import Path

from tests.controlplane.gobuild import BuildError, MissingToolError
from tests.controlplane.kubectl import KubectlError
from tests.controlplane.plane import ControlPlaneError
from tests.node import images
from tests.node.node import running
from tests.node.release import Release, ReleaseError
from tests.node.slots import NodeError

READY = """
Ready: a real node whose pods are the chart with the policy set production.

  export KUBECONFIG={kubeconfig}{path}
  kubectl -n gatewright-system get pods
  kubectl create namespace production
  kubectl create deployment shop --image=nginx:1.21 --replicas=11 -n production

The images of the node: {images}. Ctrl-C ends it, and leaves nothing behind.
"""
PATH = """
  export PATH=$PATH:{directory}   # this machine has no kubectl of its own
"""


def main() -> None:
    """Start everything, print how to reach it, and wait."""
    parser = argparse.ArgumentParser(
        description="A cluster of one real node with Gatewright in it, until Ctrl-C."
    )
    parser.add_argument("kubeconfig", type=Path, help="where to write its kubeconfig")
    kubeconfig: Path = parser.parse_args().kubeconfig.absolute()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:4.0f} s  {text}", file=sys.stderr, flush=True)

    wanted = [images.gatewright()]
    try:
        with running(say, wanted) as node:
            kubeconfig.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(node.plane.kubeconfig, kubeconfig)
            say("installing the chart")
            Release(node).install("policies.preset=production")
            path = (
                ""
                if shutil.which("kubectl")
                else PATH.format(directory=node.plane.binaries["kubectl"].parent)
            )
            say("ready")
            names = ", ".join(each.name for each in wanted)
            print(READY.format(kubeconfig=kubeconfig, path=path, images=names), flush=True)
            while True:
                node.check()
                time.sleep(1)
    except KeyboardInterrupt:
        say("stopped")
    except (
        MissingToolError,
        BuildError,
        ControlPlaneError,
        KubectlError,
        NodeError,
        ReleaseError,
    ) as error:
        sys.exit(str(error))
    finally:
        kubeconfig.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
