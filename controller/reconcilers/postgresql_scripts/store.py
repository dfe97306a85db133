"""Patroni's state in Endpoints, beside Patroni.

`await-leader` waits until a leader renews its lock. `report-volume yes|""` reports to the
controller whether the volume of this instance is full. `select-data VERSION` makes $PGDATA the
data of that version, after an upgrade or on the way back: data of other versions lies beside it,
in $PGDATA-<version>.
"""

import json
import os
import shutil
import ssl
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
RECORDED = "database.example.com/version"
PREVIOUS = "database.example.com/previous-version"
FULL = "database.example.com/full-"  # with the name of an instance
# Annotations of Patroni that describe the data of another version.
OUTDATED = {
    "": ("leader", "optime", "slots", "failsafe", "retain_slots"),
    "-failover": ("leader", "member", "scheduled_at"),
    "-sync": ("leader", "sync_standby"),
    "-config": ("history",),
}


# Returns annotations of Endpoints, after a patch of them (see `request`).
Endpoints = Callable[[str, dict[str, str | None] | None], dict[str, str]]


def request(suffix: str, annotations: dict[str, str | None] | None) -> dict[str, str]:
    """Return the annotations of the Endpoints `<name><suffix>`, after a patch of them.

    An API server that does not answer is asked again.
    """
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    at = f"[{host}]" if ":" in host else host
    name, space = os.environ["PATRONI_SCOPE"] + suffix, os.environ["PATRONI_KUBERNETES_NAMESPACE"]
    trusted = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    patch = None if annotations is None else {"metadata": {"annotations": annotations}}
    while True:
        call = urllib.request.Request(
            f"https://{at}:{port}/api/v1/namespaces/{space}/endpoints/{name}",
            data=None if patch is None else json.dumps(patch).encode(),
            headers={
                "Authorization": f"Bearer {(ACCOUNT / 'token').read_text()}",
                "Content-Type": "application/merge-patch+json",
            },
            method="GET" if patch is None else "PATCH",
        )
        try:
            with urllib.request.urlopen(call, timeout=5, context=trusted) as answer:  # noqa: S310
                stored: dict[str, Any] = json.load(answer)
                return stored["metadata"].get("annotations") or {}
        except OSError as error:
            print(f"Endpoints {name}: {error}", flush=True)
            time.sleep(2)


def await_leader() -> None:
    """Wait until a leader renews its lock.

    The lock may be old, of a leader before a return to a release without Patroni.
    """
    first = lock = request("", None)
    while not lock.get("leader") or lock.get("renewTime") in (None, first.get("renewTime")):
        print("this standby waits until the primary runs under Patroni", flush=True)
        time.sleep(2)
        lock = request("", None)


def report_volume(full: str, endpoints: Endpoints) -> None:
    """Record that the volume of this instance is full, or with an empty text that it is not."""
    mark = FULL + os.environ["POD_NAME"]
    if endpoints("-config", None).get(mark, "") != full:
        endpoints("-config", {mark: full or None})


def select_data(version: str, endpoints: Endpoints) -> None:
    """Make $PGDATA the data of this version.

    Only the first instance decides for all: it records its version and its system identifier,
    which Patroni compares. The others take what they have of the same system, or copy the primary.
    """
    data = Path(os.environ["PGDATA"])
    other, state = data.with_name(f"{data.name}-{version}"), endpoints("-config", None)
    present = read_version(data)
    if present == version:
        if state.get(RECORDED) == version:
            remove_others(data, state.get(PREVIOUS))
        return
    is_first = os.environ["POD_NAME"] == f"{os.environ['PATRONI_SCOPE']}-0"
    if state.get(RECORDED) != version and present is not None:
        if not (is_first and other.exists()):
            sys.exit(
                f"the data is of PostgreSQL {present}, this is {version}; give the resource its "
                "old version back"
            )
        record(version, present, system_of(other), endpoints)
    elif other.exists() and system_of(other) != state.get("initialize"):
        print(f"removing {other}: it is of another system than that of the primary", flush=True)
        shutil.rmtree(other)
    if present is not None:
        kept = data.with_name(f"{data.name}-{present}")
        shutil.rmtree(kept, ignore_errors=True)
        data.rename(kept)
        print(f"the data of PostgreSQL {present} is kept in {kept}", flush=True)
    if other.exists():
        other.rename(data)
        print(f"{data} is the data of PostgreSQL {version}", flush=True)


def record(version: str, present: str, system: str, endpoints: Endpoints) -> None:
    """Record which data the database has from now on; Patroni forgets what it knew of another."""
    for suffix, keys in OUTDATED.items():
        changed: dict[str, str | None] = dict.fromkeys(keys)
        if suffix == "-config":
            is_upgrade = int(version) > int(present)
            previous = present if is_upgrade else None
            changed |= {"initialize": system, RECORDED: version, PREVIOUS: previous}
        endpoints(suffix, changed)


def remove_others(data: Path, previous: str | None) -> None:
    """Remove data of other versions than the one that the database can go back to."""
    for other in data.parent.glob(f"{data.name}-*"):
        if other.name != f"{data.name}-{previous}":
            print(f"removing {other}: the database does not go back to it", flush=True)
            shutil.rmtree(other)


def read_version(data: Path) -> str | None:
    """Return the major version of the data in a directory; None if there is none."""
    file = data / "PG_VERSION"
    return file.read_text().strip() if file.exists() else None


def system_of(data: Path) -> str:
    """Return the system identifier: the first eight bytes of the control file, of any version."""
    return str(int.from_bytes((data / "global/pg_control").read_bytes()[:8], sys.byteorder))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["await-leader"]:
            await_leader()
        case ["report-volume", full]:
            report_volume(full, request)
        case ["select-data", version]:
            select_data(version, request)
        case _:
            sys.exit('commands: await-leader, report-volume yes|"", select-data VERSION')
