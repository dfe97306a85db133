"""Assemble the controller from its kinds."""

from collections.abc import Iterator, Sequence
from typing import Any

from config.faults import FaultsError, did_you_mean
from config.settings import Settings, planner_settings
from controller.reconcilers import planned_kinds
from controller.reconcilers.backup import BACKUP
from controller.reconcilers.backup_metrics import LastBackups, dumps_a_database
from controller.reconcilers.resources import CRON_JOB
from controller.runtime.cache import Cache
from controller.runtime.kind import PlannedKind
from controller.runtime.manager import Manager
from gatewright.processes.listeners import ProcessHealth
from gatewright.runtime import manager_for
from kube.endpoint import Endpoint
from kube.resource import JsonObject


def manager_of_kinds(
    settings: Settings, endpoint: Endpoint, observed: ProcessHealth, *, elects: bool
) -> Manager:
    """Return a manager with the enabled kinds. Raises FaultsError if a setting cannot be used."""
    manager = manager_for(settings, endpoint, observed, elects=elects)
    kinds = enabled_kinds(settings.kinds)
    for kind in kinds:
        manager.add_kind(kind, settings=planner_settings(settings))
    if any(CRON_JOB in kind.owns for kind in kinds):
        backups = manager.caches.of(BACKUP.resource) if BACKUP in kinds else None
        cron_jobs = manager.caches.part_of(CRON_JOB)
        observed.registry.register(
            LastBackups(
                lambda: _list_stored(backups) if backups else (),
                lambda: filter(dumps_a_database, _list_stored(cron_jobs)),
            )
        )
    return manager


def _list_stored(cache: Cache) -> Iterator[JsonObject]:
    """Yield the objects of a cache."""
    yield from filter(None, map(cache.get, cache))


def enabled_kinds(names: Sequence[str]) -> list[PlannedKind[Any]]:
    """Return the planned kinds with these names, ignoring case.

    Return all kinds for no names, and none for `none`.
    """
    if [name.lower() for name in names] == ["none"]:
        return []
    kinds_by_name = {kind.name: kind for kind in planned_kinds()}
    unknown = [name for name in names if name.lower() not in kinds_by_name]
    if unknown:
        kinds = [kind.resource.kind for kind in kinds_by_name.values()]
        raise FaultsError(
            ("--kinds", f'no kind "{name}"{did_you_mean(name, kinds)}') for name in unknown
        )
    return [kinds_by_name[name.lower()] for name in names] or list(kinds_by_name.values())
