"""`python -m tests.controlplane.cluster KUBECONFIG`: runs a control plane with Gatewright until Ctrl-C."""

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.controlplane.gobuild import BuildError, MissingToolError
from tests.controlplane.kubectl import KubectlError
from tests.controlplane.plane import ControlPlane, ControlPlaneError
from tests.gatewright.started import Gatewright, GatewrightError, once
from webhook.engine.exceptions import HOME

ROOT = Path(__file__).parents[2]
READY = """
Ready: a real API server with the production policies registered and the controller running.

  export KUBECONFIG={kubeconfig}{path}
  kubectl apply -f config/samples/my-webapp.yaml
  kubectl create deployment shop --image=nginx:1.21 --replicas=11 -n production

Ctrl-C ends it, and leaves no process behind.
"""
PATH = """
  export PATH=$PATH:{directory}   # this machine has no kubectl of its own
"""


def main() -> None:
    """Start everything, print how to reach it, and wait."""
    parser = argparse.ArgumentParser(
        description="A control plane with Gatewright at work in it, until Ctrl-C."
    )
    parser.add_argument("kubeconfig", type=Path, help="where to write its kubeconfig")
    kubeconfig: Path = parser.parse_args().kubeconfig.absolute()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with running() as (plane, gatewright):
            kubeconfig.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(plane.kubeconfig, kubeconfig)
            path = (
                ""
                if shutil.which("kubectl")
                else PATH.format(directory=plane.binaries["kubectl"].parent)
            )
            print(READY.format(kubeconfig=kubeconfig, path=path), flush=True)
            gatewright.process.wait()
            sys.exit(f"gatewright ended\n{gatewright.process.tail()}")
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
    except (
        MissingToolError,
        BuildError,
        ControlPlaneError,
        GatewrightError,
        KubectlError,
    ) as error:
        sys.exit(str(error))
    finally:
        kubeconfig.unlink(missing_ok=True)


@contextmanager
def running() -> Iterator[tuple[ControlPlane, Gatewright]]:
    """Run an API server with the production policies and the controller."""
    with (
        tempfile.TemporaryDirectory() as directory,
        ControlPlane.start(Path(directory)) as plane,
    ):
        plane.kubectl("apply", "-f", "-", input=crds())
        plane.create_namespace("production")
        plane.create_namespace(HOME)
        # the only registry that production allows
        options = ("--registry", "registry.company.com", "--namespace", HOME)
        policies = ROOT / "config/policies/production.yaml"
        with Gatewright.run(plane, Path(directory), *options, policies=policies) as gatewright:
            yield plane, gatewright


def crds() -> str:
    """Return the CRDs of Gatewright's kinds, and of kinds from installed packages."""
    printed = once("crds")
    if printed.returncode:
        raise GatewrightError(printed.stderr.strip())
    return printed.stdout


if __name__ == "__main__":
    main()
