"""The public API for hand-written controllers: `from gatewright.runtime import For, run`."""

import asyncio
import logging
import socket
import sys
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from config.faults import FaultsError
from config.settings import Settings, load_settings
from controller.runtime.controller import Controller
from controller.runtime.events import REPORTER
from controller.runtime.hand_written import apply, apply_status
from controller.runtime.leader import LeadershipLostError, LeaseSettings
from controller.runtime.manager import Manager
from controller.runtime.observed import controller_reference, is_controlled_by
from controller.runtime.plan import Event
from controller.runtime.sources import For, Owns, Watches, any_change
from controller.runtime.status import condition
from controller.runtime.types import ReconcileRequest as Request
from controller.runtime.types import Result, RetryableError, TerminalError
from gatewright.processes import logs, process
from gatewright.processes.listeners import ProcessHealth
from gatewright.processes.process import ProcessFailedError
from kube.client import Client
from kube.credentials import load
from kube.endpoint import CredentialsError, Endpoint
from kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from kube.resource import JsonObject as Object
from kube.resource import Resource

__all__ = [
    "AlreadyExists",
    "ApiError",
    "Client",
    "Conflict",
    "Controller",
    "Event",
    "For",
    "Manager",
    "NotFound",
    "Object",
    "Owns",
    "Request",
    "Resource",
    "Result",
    "RetryableError",
    "TerminalError",
    "Watches",
    "any_change",
    "apply",
    "apply_status",
    "condition",
    "controller_reference",
    "is_controlled_by",
    "run",
]

log = logging.getLogger("gatewright.process")

USER_AGENT = "gatewright-controller"


def run(
    setup: Callable[[Manager], object],
    *,
    leader_election_id: str | None = None,
    name: str | None = None,
    **settings: Any,
) -> NoReturn:
    """Run the controllers that `setup` adds until SIGTERM, with logs, metrics and probes.

    The cluster is that of your kubeconfig, or the one that the pod runs in. With a
    `leader_election_id`, the processes elect a leader by a Lease of that name: one works and the
    others stand by. `name`, by default the program's, is the User-Agent of requests and the source
    of events. `settings` are those of `gatewright controller`, such as
    `metrics_listen=":9090"`; the others come from the environment (GATEWRIGHT_METRICS_LISTEN).
    """
    logs.install()
    named = {} if leader_election_id is None else {"lease_name": leader_election_id}
    try:
        loaded = load_settings({**named, **settings})
        logs.install(loaded.log_level)
        elects = leader_election_id is not None and loaded.leader_elect
        program = name or program_name(sys.argv[0])
        sys.exit(process.execute(_run(setup, loaded, program, elects=elects)))
    except (CredentialsError, FaultsError) as error:
        log.critical("%s", error)
        sys.exit(1)


def program_name(path: str) -> str:
    """Return a program's name, as client-go's default User-Agent has it."""
    name = Path(path).stem
    return name if name.replace("-", "").replace("_", "").isalnum() else "gatewright-runtime"


async def _run(
    setup: Callable[[Manager], object], settings: Settings, program: str, *, elects: bool
) -> None:
    observed = ProcessHealth()
    manager = manager_for(
        settings,
        await load(settings.kubeconfig, settings.context),
        observed,
        elects=elects,
        user_agent=program,
        reporter=program,
    )
    setup(manager)
    await process.run(
        {"controller": partial(run_leading, manager)},
        background={},
        observed=observed,
        metrics=settings.metrics_listen,
        health=settings.health_listen,
    )


def manager_for(
    settings: Settings,
    endpoint: Endpoint,
    observed: ProcessHealth,
    *,
    elects: bool,
    user_agent: str = USER_AGENT,
    reporter: str = REPORTER,
) -> Manager:
    """Return a manager without controllers; `observed` has its health checks.

    Raises FaultsError if a setting cannot be used.
    """
    lease = None
    if elects:
        try:
            lease = LeaseSettings(
                settings.namespace or endpoint.namespace,
                settings.lease_name,
                settings.lease_duration.total_seconds(),
                settings.renew_deadline.total_seconds(),
                settings.retry_period.total_seconds(),
            )
        except ValueError as error:
            raise FaultsError([("", str(error))]) from None
    manager = Manager(
        endpoint,
        observed.registry,
        identity=f"{socket.gethostname()}_{uuid.uuid4()}",
        lease=lease,
        namespaces=settings.namespaces,
        workers=settings.workers,
        per_object_metrics=settings.object_metrics,
        user_agent=user_agent,
        reporter=reporter,
    )
    observed.ready["controller"] = manager.unready
    return manager


async def run_leading(manager: Manager, stop: asyncio.Event) -> None:
    """Run until `stop` is set; a lost lease ends the process, with one line."""
    try:
        await manager.run(stop)
    except* LeadershipLostError as lost:
        raise ProcessFailedError(str(lost.exceptions[0])) from lost
