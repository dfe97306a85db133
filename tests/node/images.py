"""The images that pods run: built from Dockerfiles when their sources change, and cached."""

import hashlib
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from controller.reconcilers.backup_cronjob import TAG
from gatewright import __version__
from tests.databases.binaries import nats_server
from tests.node import buildah
from tests.node.bases import provide
from tests.node.parts import PAUSE
from tests.node.programs import built

ROOT = Path(__file__).parents[2]
DOCKERFILES = Path(__file__).parent / "dockerfiles"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Image:
    """An image: the name in pods, and its sources."""

    name: str
    context: Path
    dockerfile: Path
    # files of the build context: all, unless there is a .dockerignore
    files: tuple[Path, ...]

    @property
    def key(self) -> str:
        """A hash of all its sources."""
        content = hashlib.sha256(self.dockerfile.read_bytes())
        for file in self.files:
            content.update(f"\n{file.relative_to(self.context)}\n".encode() + file.read_bytes())
        return content.hexdigest()[:20]

    @property
    def built(self) -> str:
        """Its name in buildah's storage, with the hash of its sources."""
        return f"gatewright.test/{self.name.split('/')[-1].split(':')[0]}:{self.key}"

    @property
    def bases(self) -> list[str]:
        """Its base images."""
        text = self.dockerfile.read_text()
        stages = set(re.findall(r"^FROM \S+ AS (\S+)", text, re.MULTILINE))
        sources = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
        return [each for each in dict.fromkeys(sources) if each not in {"scratch", *stages}]


def image(name: str, context: Path, dockerfile: Path | None = None) -> Image:
    """Return the image of a directory with a Dockerfile."""
    ignore = context / ".dockerignore"
    tops, left_out = _read_ignore(ignore) if ignore.exists() else ([context], [])
    files = sorted(
        file
        for top in tops
        for file in ([top] if top.is_file() else top.rglob("*"))
        if file.is_file()
        and "__pycache__" not in file.parts
        and not any(file.is_relative_to(folder) for folder in left_out)
    )
    return Image(name, context, dockerfile or context / "Dockerfile", tuple(files))


def gatewright() -> Image:
    """Return the project's own image."""
    return image(f"docker.io/library/gatewright:{__version__}", ROOT)


def pause() -> Image:
    """Return the image of each pod's first process."""
    context = buildah.storage() / "pause"
    context.mkdir(parents=True, exist_ok=True)
    shutil.copy(built()["pause"], context / "pause")
    (context / "Dockerfile").write_text(
        'FROM scratch\nCOPY pause /pause\nUSER 65535:65535\nENTRYPOINT ["/pause"]\n'
    )
    return image(PAUSE, context)


def workloads() -> list[Image]:
    """Return the images of kinds, built from Debian's packages under the names in pods."""
    scripts = ROOT / "images/backup"
    backup = f"docker.io/library/gatewright-backup-postgresql:{TAG}"
    return [
        image("docker.io/nginxinc/nginx-unprivileged:1.29", DOCKERFILES / "web"),
        image(
            "docker.io/library/gatewright-postgresql:17",
            ROOT / "images/postgresql",
            DOCKERFILES / "postgres/Dockerfile",
        ),
        image(backup, scripts, DOCKERFILES / "backup/Dockerfile"),
    ]


def stores() -> list[Image]:
    """Return the images of the queue and the cache of platforms."""
    context = buildah.storage() / "nats"
    context.mkdir(parents=True, exist_ok=True)
    shutil.copy(nats_server(), context / "nats-server")
    return [
        image("docker.io/library/nats:2.14-alpine", context, DOCKERFILES / "nats/Dockerfile"),
        image("docker.io/valkey/valkey:8.1", DOCKERFILES / "valkey"),
    ]


def build(images: Iterable[Image], say: Say) -> None:
    """Build those that are not in buildah's storage."""
    with buildah.locked():
        for image in images:
            if buildah.has(image.built):
                continue
            for base in image.bases:
                provide(base, say)
            say(f"building {image.name}")
            buildah.build(image.dockerfile, image.context, image.built, image.name)
            buildah.forget_others(image.built)


def archive(each: Image, path: Path) -> None:
    """Write a built image to a new file that a container runtime imports."""
    buildah.run("push", each.built, f"docker-archive:{path}:{each.name}")


def _read_ignore(ignore: Path) -> tuple[list[Path], list[Path]]:
    """Return the paths that a .dockerignore keeps which excludes everything else, and exceptions."""
    lines = [line for line in ignore.read_text().splitlines() if not line.startswith(("#", "*"))]
    kept = [ignore.parent / line[1:] for line in lines if line.startswith("!")]
    return kept, [ignore.parent / line for line in lines if line and not line.startswith("!")]
