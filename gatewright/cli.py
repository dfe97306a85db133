"""The command line: one module per command, imported when the command runs."""

import importlib
import importlib.metadata
import importlib.util
import io
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib.metadata import EntryPoint
from typing import NoReturn

import click

from gatewright import __version__
from gatewright.console.terminal import complain
from gatewright.processes.memory import collect_rarely

GROUP = "gatewright.commands"  # entry points of installed packages: each a click.Command
COMMANDS = {
    "run": "webhook and controller in one process, for a laptop",
    "webhook": "serve admission reviews over TLS",
    "controller": "reconcile custom resources, and register the webhook",
    "check": "judge manifests as the webhook would",
    "test": "test policies with files of cases",
    "impact": "compare what two policy sets decide",
    "plan": "print what the controller would create",
    "restore": "restore a backup into its database",
    "exceptions": "list exceptions that are unused, too wide or about to end",
    "policies": "list the presets and the policies, or those of a cluster",
    "explain": "explain a policy",
    "crds": "print the CustomResourceDefinitions",
    "rbac": "print the RBAC rules of kinds that packages add",
    "unregister": "take Gatewright out of the API server's path",
    "certs": "create a certificate authority and a serving certificate",
    "demo": "show denials and defaults, without a cluster",
    "completion": "print the completion script of a shell",
    "version": "print the version",
}
TOOLS = {
    "doctor": "find problems in a cluster's admission",
    "migrate": "convert policies of Kyverno, Gatekeeper and Pod Security",
    "export": "write policies as Kubernetes' own admission policies",
    "playground": "judge an object on a local page, while it is typed",
    "lsp": "serve an editor: violations, fixes, completion",
    "scaffold": "write a new kind: type, plan, tests and sample",
}
"""The commands of gatewright.tools, which Gatewright's image does not have."""


class Commands(click.Group):
    """The commands by name; each is imported only when it runs or its help is shown."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the help; those of other packages come last."""
        return [*COMMANDS, *added_commands()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """Import a command. An unknown name is a usage error."""
        if cmd_name in COMMANDS:
            module = importlib.import_module(f"gatewright.commands.{cmd_name}")
            command: click.Command = module.command
            return command
        if cmd_name not in added_commands():
            ctx.fail(_why_missing(cmd_name))
        return load_command(added_commands()[cmd_name])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them, except those of other packages."""
        others = {
            name: TOOLS.get(name) or load_command(entry).get_short_help_str()
            for name, entry in added_commands().items()
        }
        with formatter.section("Commands"):
            formatter.write_dl(list({**COMMANDS, **others}.items()))


def _why_missing(name: str) -> str:
    if name in TOOLS:
        return (
            f'the command "{name}" is not installed: Gatewright\'s image does not have it; '
            "`pipx install` and `uv tool install` of Gatewright do"
        )
    # Imported here: it takes half the time of `gatewright version`.
    from config.faults import did_you_mean

    return f'no command "{name}"{did_you_mean(name, [*COMMANDS, *added_commands()])}'


@cache
def added_commands() -> dict[str, EntryPoint]:
    """Return the entry points of commands by name: those of gatewright.tools, then others.

    Raises ModuleError if two commands have the same name.
    """
    from config.modules import ModuleError

    has_tools = importlib.util.find_spec("gatewright.tools") is not None
    added: dict[str, EntryPoint] = {}
    for entry in sorted(importlib.metadata.entry_points(group=GROUP), key=lambda each: each.name):
        if entry.name in COMMANDS or entry.name in added:
            raise ModuleError(
                f'entry point {entry.name} ({entry.value}): a command "{entry.name}" already exists'
            )
        if has_tools or not entry.module.startswith("gatewright.tools."):
            added[entry.name] = entry
    return {name: added[name] for name in TOOLS if name in added} | added


def load_command(entry: EntryPoint) -> click.Command:
    """Import the command of an entry point. Raises ModuleError if it is none."""
    from config.modules import ModuleError, import_named

    where = f"entry point {entry.name} ({entry.value})"
    command = import_named(entry.load, where)
    if not isinstance(command, click.Command):
        raise ModuleError(f"{where}: not a command; it must name a click.Command")
    return command


@click.command(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, message="gatewright %(version)s")
def gatewright() -> None:
    """Control what enters a Kubernetes cluster, and run the custom resources it admits.

    Exit codes: 0 success, 1 something was denied or a case failed, 2 wrong command line, 3 a file
    cannot be read, parsed or judged.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; print each file error as one line on stderr."""
    collect_rarely()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Characters that the terminal cannot show are printed as escapes.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = gatewright.main(args=arguments, prog_name="gatewright", standalone_mode=False)
    except click.Abort:
        sys.exit(128 + signal.SIGINT)
    # click exits with 1 for a closed pipe, which is not a verdict; otherwise this is a completion
    except SystemExit as end:
        sys.exit(128 + signal.SIGPIPE if end.code == 1 else end.code)
    except click.ClickException as error:
        _end(partial(_show, error), error.exit_code)
    except _unusable() as error:
        _end(partial(complain, str(error)), 3)
    except OSError as error:
        sys.stdout = None  # otherwise Python tries again to flush standard output
        _end(partial(complain, f"{error.filename or 'standard output'}: {error.strerror}"), 3)
    sys.exit(code if isinstance(code, int) else 0)


def _show(error: click.ClickException) -> None:
    """Print an error, whose names of files and keys may be commands of a CI, with its usage."""
    text = io.StringIO()
    error.show(text)
    complain(text.getvalue().rstrip("\n"))


def _end(report: Callable[[], None], code: int) -> NoReturn:
    """Exit with `code` after calling `report`, even if standard error is closed."""
    with suppress(OSError):
        report()
    sys.exit(code)


def _unusable() -> tuple[type[ValueError], ...]:
    """Return the exception types of file errors; imported only after one was raised."""
    from certs import CertificateError
    from config.documents import DocumentError
    from config.modules import ModuleError
    from kube.endpoint import CredentialsError
    from webhook.policy_sets.policy_set import PolicySetError
    from webhook.registries.credentials import RegistryConfigError
    from webhook.review import MalformedRequestError

    return (
        CertificateError,
        CredentialsError,
        DocumentError,
        MalformedRequestError,
        ModuleError,
        PolicySetError,
        RegistryConfigError,
    )
