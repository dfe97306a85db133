"""`gatewright lsp`: a language server for editors."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from config.presets import policy_path
from config.settings import Settings
from gatewright.console.options import (
    INSTALLED_IN,
    NAMESPACE,
    NAMESPACE_LABELS,
    POLICIES,
    settings_options,
)
from webhook.engine.exceptions import HOME
from webhook.engine.match import Labels

OPTIONS = ("policies", "namespace")


@click.command
@settings_options("policies", "registry", "controller_account", *POLICIES)
@NAMESPACE
@NAMESPACE_LABELS
@INSTALLED_IN
def command(
    settings: Settings, namespace: str, namespace_labels: Mapping[str, Labels], home: str | None
) -> int:
    """Serve an editor over standard input and output: violations, fixes, pages, completion.

    An editor may name policies and a namespace in its initializationOptions, such as {"policies":
    ["baseline"], "namespace": "shop"}; paths are relative to its workspace.
    """
    try:
        # Imported here: pygls is an extra.
        from gatewright.tools.editor.diagnostics import EditorPolicies
        from gatewright.tools.editor.language_server import language_server
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"{error.name} is not installed; gatewright lsp needs pip install 'gatewright[lsp]'"
        ) from None

    def policies(options: dict[str, Any], root: Path | None) -> EditorPolicies:
        if unknown := [name for name in options if name not in OPTIONS]:
            raise ValueError(f"unknown: {', '.join(unknown)}; known: {', '.join(OPTIONS)}")
        named = options.get("policies")
        used = settings
        if named is not None:
            if not isinstance(named, list):
                raise ValueError("policies: must be a list")
            paths = [policy_path(str(each), root or Path()) for each in named]
            used = settings.model_copy(update={"policies": paths})
        return EditorPolicies(
            used,
            home or settings.namespace or HOME,
            str(options.get("namespace") or namespace),
            namespace_labels,
            root,
        )

    language_server(policies).start_io()
    return 0
