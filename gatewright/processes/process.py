"""Run the parts of a process: start them, and stop them together."""

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import uvloop
from prometheus_client import disable_created_metrics

from gatewright.processes import memory
from gatewright.processes.listeners import ProcessHealth, listening
from gatewright.processes.page_server import Address
from kube.loop import Loop

# Runs until the event is set, then cleans up and ends.
Part = Callable[[asyncio.Event], Coroutine[Any, Any, None]]
Background = Callable[[], Awaitable[Any]]  # runs forever; cancelled when all parts have ended

SIGNALS = (signal.SIGTERM, signal.SIGINT)

log = logging.getLogger("gatewright.process")


class ProcessFailedError(Exception):
    """A part failed; the failure has been logged."""


def execute(main: Coroutine[Any, Any, None]) -> int:
    """Run a process from start to end and return its exit code.

    An OSError is printed as one line.
    """
    try:
        uvloop.run(main, loop_factory=Loop)
    except ProcessFailedError:
        return 1
    except OSError as error:
        log.critical("%s", error)
        return 1
    except KeyboardInterrupt:  # before the signal handlers were installed
        return 128 + signal.SIGINT
    return 0


async def run(
    parts: Mapping[str, Part],
    *,
    background: Mapping[str, Background],
    observed: ProcessHealth,
    metrics: Address,
    health: Address,
) -> None:
    """Run all parts until SIGTERM or SIGINT.

    Raises ProcessFailedError when one of them fails or ends early.
    """
    stop = asyncio.Event()
    observed.ready["process"] = lambda: "stopping" if stop.is_set() else None
    disable_created_metrics()  # type: ignore[no-untyped-call]  # saves a second series for each counter
    with _signals_set(stop):
        async with listening(observed, metrics, health) as (metrics_address, health_address):
            memory.settle()
            log.info(
                "started",
                extra={"fields": {"metrics": metrics_address[1], "health": health_address[1]}},
            )
            await _run_together(parts, {"memory": memory.trim, **background}, stop)
    log.info("stopped")


async def _run_together(
    parts: Mapping[str, Part], background: Mapping[str, Background], stop: asyncio.Event
) -> None:
    ending: list[asyncio.Task[None]] = []
    endless: list[asyncio.Task[None]] = []
    try:
        async with asyncio.TaskGroup() as group:
            ending += [
                group.create_task(_until(stop, name, part), name=name)
                for name, part in parts.items()
            ]
            endless += [
                group.create_task(_for_ever(name, task), name=name)
                for name, task in background.items()
            ]
            await asyncio.wait(ending)
            for task in endless:
                task.cancel()
    except ExceptionGroup as failures:
        for task in ending + endless:
            for error in _errors(None if task.cancelled() else task.exception()):
                expected = isinstance(error, OSError | ProcessFailedError)
                log.critical(
                    "%s failed: %s", task.get_name(), error, exc_info=None if expected else error
                )
        raise ProcessFailedError from failures


def _errors(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, or each error of a group."""
    if isinstance(error, BaseExceptionGroup):
        for exception in error.exceptions:
            yield from _errors(exception)
    elif error is not None:
        yield error


async def _until(stop: asyncio.Event, name: str, part: Part) -> None:
    await part(stop)
    if not stop.is_set():
        raise ProcessFailedError(f"{name} ended unexpectedly")


async def _for_ever(name: str, task: Background) -> None:
    await task()
    raise ProcessFailedError(f"{name} ended unexpectedly")


@contextmanager
def _signals_set(stop: asyncio.Event) -> Iterator[None]:
    """Set the event at the first signal; exit immediately at the second."""
    loop = asyncio.get_running_loop()

    def on_signal(number: signal.Signals) -> None:
        if stop.is_set():
            log.critical("second %s: exiting immediately", number.name)
            os._exit(128 + number)
        log.info("%s: stopping", number.name)
        stop.set()

    for number in SIGNALS:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
