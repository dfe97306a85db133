"""Settings as options: names, help and defaults come from one model."""

import click
import pytest
from click.testing import CliRunner

from config.settings import Settings
from gatewright.console.options import settings_options


@click.command
@settings_options("policies", "listen", "lease_duration", "leader_elect", "workers", "webhook_url")
@click.option("--other", default="unset")
def command(settings, other):
    """Print the arguments."""
    click.echo(f"{settings.model_dump(exclude_unset=True)!r} {other}")


def run(*arguments, **environment):
    """Run the command; return exit code and output."""
    result = CliRunner(env=environment).invoke(command, arguments)
    return result.exit_code, result.output


def test_the_help_comes_from_the_model():
    """Each option has its description, default and type."""
    code, out = run("--help")
    assert code == 0
    text = " ".join(out.split())
    for option in (
        "--policies PATH policy sets: names of presets, YAML files, or directories of them",
        "--listen HOST:PORT address the webhook listens on, with TLS [:9443]",
        "--lease-duration DURATION how long standbys wait for a leader that does not renew [15s]",
        "--leader-elect / --no-leader-elect elect a leader with a Lease",
        "--workers NUMBER concurrent reconciles of each kind [5]",
        "--webhook-url URL register this URL instead of the Service",
        "--config FILE settings file: YAML, same names",
    ):
        assert option in text


def test_only_given_options_are_set():
    """Other settings come from the environment, the file or the default."""
    assert run() == (0, "{} unset\n")
    assert run("--other", "x", GATEWRIGHT_WORKERS="7") == (0, "{'workers': 7} x\n")
    assert run("--workers", "3", GATEWRIGHT_WORKERS="7") == (0, "{'workers': 3} unset\n")
    assert run("--no-leader-elect") == (0, "{'leader_elect': False} unset\n")
    assert run("--leader-elect", GATEWRIGHT_LEADER_ELECT="false") == (
        0,
        "{'leader_elect': True} unset\n",
    )


def test_flags_override_the_file(tmp_path):
    """--config names a settings file."""
    file = tmp_path / "settings.yaml"
    file.write_text("workers: 2\nwebhook-url: https://a\n")
    assert run("--config", str(file), "--workers", "4") == (
        0,
        "{'workers': 4, 'webhook_url': 'https://a'} unset\n",
    )


@pytest.mark.parametrize(
    ("arguments", "environment", "told"),
    [
        (["--workers", "0"], {}, '--workers: "0": should be greater than or equal to 1'),
        (
            ["--listen", "9443"],
            {},
            '--listen: ["9443"]: must be an address of the form HOST:PORT, or :PORT for every interface',
        ),
        ([], {"GATEWRIGHT_WORKERS": "x"}, '$GATEWRIGHT_WORKERS: "x": should be a valid integer'),
        (
            [],
            {"GATEWRIGHT_WORKER": "1"},
            '$GATEWRIGHT_WORKER: unknown setting; did you mean "GATEWRIGHT_WORKERS"?',
        ),
    ],
)
def test_an_invalid_value_is_a_usage_error(arguments, environment, told):
    """The exit code is 2, with the option's name."""
    code, out = run(*arguments, **environment)
    assert code == 2
    assert told.replace('["9443"]', '"9443"') in out


def test_every_setting_can_be_an_option():
    """Every setting has a type that an option supports."""

    @click.command
    @settings_options(*Settings.model_fields)
    def everything(settings):
        click.echo(len(settings.model_fields_set))

    assert CliRunner().invoke(everything, ["--help"]).exit_code == 0
    assert CliRunner().invoke(everything, []).output == "0\n"
