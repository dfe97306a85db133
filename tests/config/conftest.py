"""A separate control plane, with the committed manifests applied as documented."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.plane import ControlPlane

CONFIG = Path(__file__).parents[2] / "config"


@pytest.fixture(scope="package")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The plain manifests, applied in order; kubectl prints no warning."""
    with ControlPlane.start(
        tmp_path_factory.mktemp("controlplane") / "installed", audit=False
    ) as plane:
        for directory in ("crd/bases", "rbac", "manager"):
            assert plane.kubectl("apply", "-f", str(CONFIG / directory)).stderr == ""
        plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=90s")
        yield plane
