"""`gatewright playground`: judge an object on a local page, while it is typed."""

import asyncio
import signal
from typing import Any

import click
from aiohttp import web
from pydantic import TypeAdapter, ValidationError

from config.documents import documents_at, yaml_files
from config.settings import ListenAddress, Settings
from gatewright.console.options import settings_options
from gatewright.console.terminal import say
from gatewright.processes.second_loop import log
from gatewright.tools.playground.server import application


class _Address(click.ParamType[Any]):
    name = "HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return TypeAdapter(ListenAddress).validate_python(value)
        except ValidationError as error:
            self.fail(error.errors()[0]["msg"].removeprefix("Value error, "), param, ctx)


@click.command
@settings_options("policies")
@click.option(
    "--listen", type=_Address(), default="127.0.0.1:8500", help="address to serve the page on"
)
def command(settings: Settings, listen: tuple[str | None, int]) -> None:
    """Serve one page that judges an object while it is typed, as the webhook would.

    At first, the page has the policy set of --policies. Nothing leaves this machine, and nothing is
    stored: a link to share has the whole draft after its #.
    """
    documents_at(settings.policies)  # an error here is better than one on the page
    files = [file for path in settings.policies for file in yaml_files(path)]
    policies = "---\n".join(file.read_text("utf-8-sig") for file in files)
    asyncio.run(_serve(listen, policies))


async def _serve(listen: tuple[str | None, int], policies: str) -> None:
    host, port = listen
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    runner = web.AppRunner(application(host or "localhost", policies), access_log=None, logger=log)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            # From Python 3.13 on, the reason begins with "[errno 98] ".
            reason = (error.strerror or str(error)).rpartition(": ")[2].rpartition("] ")[2]
            raise click.ClickException(
                f"cannot listen on {host or '*'}:{port}: {reason}; choose another address with "
                "--listen"
            ) from None
        name = host if host and ":" not in host else f"[{host}]" if host else "localhost"
        say(f"http://{name}:{runner.addresses[0][1]}/ until Ctrl-C")
        await ended.wait()
    finally:
        await runner.cleanup()
