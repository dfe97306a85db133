"""Which data an instance starts with, after an upgrade to another major version and on the way back."""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controller import reconcilers

SCRIPT = Path(reconcilers.__file__).parent / "postgresql_scripts/store.py"
VERSION, PREVIOUS = "database.example.com/version", "database.example.com/previous-version"


class Instance:
    """The volume of an instance, and the Endpoints of its database."""

    def __init__(self, directory: Path) -> None:
        """Begin with an empty volume, and what Patroni recorded of the system 15."""
        self.data = directory / "pgdata"
        self.config = {"initialize": "15", "history": "[]"}
        self.others = {"": {"leader": "shop-0", "optime": "7"}, "-sync": {"leader": "shop-0"}}

    def add(self, version: int, name: str = "pgdata", system: int | None = None) -> None:
        """Add data of a version, whose system identifier is the version, too."""
        data = self.data.with_name(name)
        (data / "global").mkdir(parents=True)
        (data / "PG_VERSION").write_text(f"{version}\n")
        identifier = (system or version).to_bytes(8, "little")
        (data / "global/pg_control").write_bytes(identifier + b"more")

    def endpoints(self, suffix: str, annotations: dict[str, str | None] | None) -> dict[str, str]:
        """Return annotations after a merge patch, as the API server does."""
        stored = self.config if suffix == "-config" else self.others.setdefault(suffix, {})
        for key, value in (annotations or {}).items():
            if value is None:
                stored.pop(key, None)
            else:
                stored[key] = value
        return stored

    @property
    def volume(self) -> dict[str, str]:
        """The directories with their versions."""
        found = sorted(self.data.parent.glob("pgdata*"))
        return {each.name: (each / "PG_VERSION").read_text().strip() for each in found}


@pytest.fixture
def select(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Instance, Callable[[str, str], Any]]:
    """An instance, and the start of a pod with a version."""
    instance, script = Instance(tmp_path), runpy.run_path(str(SCRIPT))
    monkeypatch.setenv("PGDATA", str(instance.data))
    monkeypatch.setenv("PATRONI_SCOPE", "shop")

    def start(pod: str, version: str) -> None:
        monkeypatch.setenv("POD_NAME", pod)
        script["select_data"](version, instance.endpoints)

    return instance, start


Selecting = tuple[Instance, Callable[[str, str], Any]]


def test_the_first_instance_takes_the_upgraded_data_and_records_it(select: Selecting) -> None:
    """Patroni forgets what it knew of the other system; the earlier data is kept for the way back."""
    instance, start = select
    instance.add(15)
    instance.add(17, "pgdata-17")
    start("shop-0", "17")
    assert instance.volume == {"pgdata": "17", "pgdata-15": "15"}
    assert instance.config == {"initialize": "17", VERSION: "17", PREVIOUS: "15"}
    assert instance.others == {"": {}, "-sync": {}, "-failover": {}}

    start("shop-0", "17")  # a restart
    assert instance.volume == {"pgdata": "17", "pgdata-15": "15"}

    start("shop-0", "15")  # the way back
    assert instance.volume == {"pgdata": "15", "pgdata-17": "17"}
    assert instance.config == {"initialize": "15", VERSION: "15"}

    start("shop-0", "15")  # it does not go to 17 again
    assert instance.volume == {"pgdata": "15"}


def test_a_restart_after_the_confirmation_removes_the_earlier_data(select: Selecting) -> None:
    """The controller empties the annotation."""
    instance, start = select
    instance.add(17)
    instance.add(15, "pgdata-15")
    instance.config |= {"initialize": "17", VERSION: "17", PREVIOUS: ""}
    start("shop-0", "17")
    assert instance.volume == {"pgdata": "17"}


def test_an_end_between_the_two_renames_is_completed(select: Selecting) -> None:
    """The volume has no data under its name."""
    instance, start = select
    instance.add(15, "pgdata-15")
    instance.add(17, "pgdata-17")
    instance.config |= {"initialize": "17", VERSION: "17", PREVIOUS: "15"}
    start("shop-0", "17")
    assert instance.volume == {"pgdata": "17", "pgdata-15": "15"}


def test_other_instances_copy_the_primary_and_come_back_with_their_own(select: Selecting) -> None:
    """They never decide; data of an upgrade that was taken back is not used."""
    instance, start = select
    instance.add(15)
    instance.add(17, "pgdata-17", system=16)  # of an upgrade before
    with pytest.raises(SystemExit, match="the data is of PostgreSQL 15, this is 17"):
        start("shop-1", "17")
    assert instance.volume == {"pgdata": "15", "pgdata-17": "17"}

    instance.config |= {"initialize": "17", VERSION: "17", PREVIOUS: "15"}
    start("shop-1", "17")
    assert instance.volume == {"pgdata-15": "15"}
    instance.add(17)  # Patroni has copied the primary
    instance.config = {"initialize": "15", VERSION: "15"}
    start("shop-1", "15")
    assert instance.volume == {"pgdata": "15", "pgdata-17": "17"}


def test_a_full_volume_is_recorded_until_it_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written without a change."""
    instance, script = Instance(tmp_path), runpy.run_path(str(SCRIPT))
    monkeypatch.setenv("POD_NAME", "shop-1")
    before, mark = dict(instance.config), "database.example.com/full-shop-1"
    for full, stored in (("", before), ("yes", {**before, mark: "yes"}), ("", before)):
        patches: list[Any] = []

        def endpoints(suffix: str, wanted: Any, patches: list[Any] = patches) -> dict[str, str]:
            patches.extend([] if wanted is None else [wanted])
            return instance.endpoints(suffix, wanted)

        is_same = instance.config == stored
        script["report_volume"](full, endpoints)
        assert (instance.config, bool(patches)) == (stored, not is_same)
