"""`gatewright completion`: print the completion script of a shell."""

import click
from click.shell_completion import get_completion_class

VARIABLE = "_GATEWRIGHT_COMPLETE"  # the variable that the script sets when it asks for completions


@click.command
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script by which SHELL completes commands and options.

    \b
    bash: eval "$(gatewright completion bash)"      in ~/.bashrc
    zsh:  eval "$(gatewright completion zsh)"       in ~/.zshrc
    fish: gatewright completion fish > ~/.config/fish/completions/gatewright.fish
    """  # noqa: D301  # click keeps the lines of a paragraph that begins with this character
    completion = get_completion_class(shell)
    assert completion is not None
    root = click.get_current_context().find_root().command
    click.echo(completion(root, {}, "gatewright", VARIABLE).source())
