"""The control plane's own kubectl, which ignores the kubeconfig and plugins of the user who runs the tests."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.controlplane.processes import GOGC


class KubectlError(Exception):
    """kubectl failed unexpectedly; the message is its output."""


class Kubectl:
    """Call it as a shell would: `kubectl("get", "pods", "-n", namespace).stdout`."""

    def __init__(
        self, binary: Path, directory: Path, kubeconfig: Path, on_failure: Callable[[], None]
    ) -> None:
        self._binary = binary
        self._on_failure = on_failure
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory / "home"),
            "KUBECONFIG": str(kubeconfig),
            "KUBECACHEDIR": str(directory / "kubectl-cache"),
            "KUBERC": "off",
            "GOGC": GOGC,
        }

    def __call__(
        self,
        *args: str,
        input: str | dict[str, Any] | None = None,
        check: bool = True,
        kubeconfig: Path | None = None,
        timeout: float = 120.0,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as admin, or with another kubeconfig.

        Raises KubectlError on failure unless `check` is False.
        """
        result = subprocess.run(
            [str(self._binary), *args],
            input=json.dumps(input) if isinstance(input, dict) else input or "",
            env=self.environment | ({"KUBECONFIG": str(kubeconfig)} if kubeconfig else {}),
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        if result.returncode:
            self._on_failure()
            if check:
                raise KubectlError(
                    f"kubectl {' '.join(args)}: exit {result.returncode}: {result.stderr or result.stdout}"
                )
        return result
