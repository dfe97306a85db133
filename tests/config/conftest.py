"""Control planes with the committed manifests applied as documented."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.lent import LentPlane
from tests.controlplane.plane import ControlPlane

CONFIG = Path(__file__).parents[2] / "config"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The plain manifests, applied in order; kubectl prints no warning."""
    with ControlPlane.start(
        tmp_path_factory.mktemp("controlplane") / "installed", audit=False
    ) as plane:
        for directory in ("crd/bases", "rbac", "manager"):
            assert plane.kubectl("apply", "-f", str(CONFIG / directory)).stderr == ""
        plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=90s")
        yield plane


@pytest.fixture(scope="module")
def served(lent_plane: LentPlane) -> Iterator[ControlPlane]:
    """An API server without controllers, with the CRDs and the rights of the plain manifests."""
    with lent_plane.lend() as plane:
        for directory in ("crd/bases", "rbac"):
            plane.kubectl("apply", "-f", str(CONFIG / directory))
        plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=90s")
        yield plane
