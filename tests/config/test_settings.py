"""Flags override the environment, which overrides the file, which overrides the defaults; a typo is an error."""

from datetime import timedelta
from pathlib import Path

import pytest

from config.documents import DocumentError
from config.faults import FaultsError
from config.settings import Settings, load_settings


@pytest.fixture
def file(tmp_path):
    """Write a settings file."""
    return tmp_path / "gatewright.yaml"


def test_flags_override_environment_file_and_defaults(file):
    """Each setting has the value with the highest precedence."""
    file.write_text(
        "workers: 2\nlease-name: from-file\nwebhook_service: from-file\ncontext: from-file\n"
    )
    environment = {
        "GATEWRIGHT_LEASE_NAME": "from-environment",
        "GATEWRIGHT_CONTEXT": "from-environment",
        "GATEWRIGHT_CA_SECRET": "from-environment",
        "HOME": "/nowhere",
    }
    settings = load_settings({"context": "from-flag"}, file, environment)
    assert settings.model_dump(exclude_unset=True) == {
        "workers": 2,
        "webhook_service": "from-file",
        "lease_name": "from-environment",
        "ca_secret": "from-environment",
        "context": "from-flag",
    }
    assert (settings.tls_secret, settings.listen, settings.cluster) == (
        "gatewright-webhook-tls",
        (None, 9443),
        True,
    )


def test_the_environment_is_a_parameter(monkeypatch):
    """The process environment is not read implicitly."""
    monkeypatch.setenv("GATEWRIGHT_WORKERS", "7")
    assert load_settings({}, environment={}) == Settings.model_construct()
    assert load_settings({}).workers == 7


@pytest.mark.parametrize(
    ("setting", "written", "value"),
    [
        ("lease_duration", "15s", timedelta(seconds=15)),
        ("lease_duration", "1m30s", timedelta(seconds=90)),
        ("lease_duration", "1.5h", timedelta(minutes=90)),
        ("lease_duration", "250ms", timedelta(milliseconds=250)),
        ("listen", ":9443", (None, 9443)),
        ("listen", "127.0.0.1:0", ("127.0.0.1", 0)),
        ("listen", "[::1]:8443", ("::1", 8443)),
        ("listen", "example.com:65535", ("example.com", 65535)),
        ("kinds", "WebApp", ["WebApp"]),
        ("kinds", "WebApp,VoteConfig", ["WebApp", "VoteConfig"]),
        ("kinds", ",WebApp,", ["WebApp"]),
        ("kinds", "", []),
        ("policies", "a.yaml,b/c", [Path("a.yaml"), Path("b/c")]),
        ("cluster", "false", False),
        ("cluster", "0", False),
        ("workers", "8", 8),
        ("tls_minimum", "1.2", "1.2"),
    ],
)
def test_text_is_parsed_alike_everywhere(setting, written, value, file):
    """A flag, a variable and a line of the file have the same syntax."""
    file.write_text(f"{setting.replace('_', '-')}: '{written}'\n")
    variable = {f"GATEWRIGHT_{setting.upper()}": written}
    found = [
        load_settings({setting: written}, environment={}),
        load_settings({}, environment=variable),
        load_settings({}, file, {}),
    ]
    assert [getattr(settings, setting) for settings in found] == [value] * 3


def test_a_repeated_flag_is_a_list():
    """Repetition and commas can be combined."""
    assert load_settings({"kinds": ("A,B", "C")}, environment={}).kinds == ["A", "B", "C"]


@pytest.mark.parametrize(
    ("setting", "written", "text"),
    [
        ("lease_duration", "15", '"15": must be a duration such as 15s or 1m30s'),
        ("lease_duration", "15 s", '"15 s": must be a duration such as 15s or 1m30s'),
        ("lease_duration", "-1s", '"-1s": must be a duration such as 15s or 1m30s'),
        ("lease_duration", "", '"": must be a duration such as 15s or 1m30s'),
        (
            "listen",
            "9443",
            '"9443": must be an address of the form HOST:PORT, or :PORT for every interface',
        ),
        (
            "listen",
            ":",
            '":": must be an address of the form HOST:PORT, or :PORT for every interface',
        ),
        (
            "listen",
            ":65536",
            '":65536": must be an address of the form HOST:PORT, or :PORT for every interface',
        ),
        (
            "listen",
            ":-1",
            '":-1": must be an address of the form HOST:PORT, or :PORT for every interface',
        ),
        ("workers", "0", '"0": should be greater than or equal to 1'),
        (
            "workers",
            "many",
            '"many": should be a valid integer, unable to parse string as an integer',
        ),
        ("cluster", "maybe", '"maybe": should be a valid boolean, unable to interpret input'),
        ("tls_minimum", "1.1", "\"1.1\" is not one of '1.2' or '1.3'"),
    ],
)
def test_an_error_names_its_source(setting, written, text, file):
    """A flag, a variable, or the file and line."""
    flag, variable = setting.replace("_", "-"), f"GATEWRIGHT_{setting.upper()}"
    with pytest.raises(FaultsError) as error:
        load_settings({setting: written}, environment={})
    assert str(error.value) == f"--{flag}: {text}"
    with pytest.raises(FaultsError) as error:
        load_settings({}, environment={variable: written})
    assert str(error.value) == f"${variable}: {text}"
    file.write_text(f"# settings\n{flag}: '{written}'\n")
    with pytest.raises(DocumentError) as error:
        load_settings({}, file, {})
    assert str(error.value) == f"{file}:2: {flag}: {text}"


def test_an_unknown_variable_is_an_error():
    """A misspelt variable must not be ignored; all are reported."""
    with pytest.raises(FaultsError) as error:
        load_settings({}, environment={"GATEWRIGHT_WORKER": "5", "GATEWRIGHT_LEASENAME": "x"})
    assert str(error.value).split("\n") == [
        '$GATEWRIGHT_WORKER: unknown setting; did you mean "GATEWRIGHT_WORKERS"?',
        '$GATEWRIGHT_LEASENAME: unknown setting; did you mean "GATEWRIGHT_LEASE_NAME"?',
    ]


def test_service_variables_are_not_settings():
    """Kubernetes sets variables for each Service; those of gatewright-webhook have Gatewright's prefix."""
    environment = {
        "GATEWRIGHT_WEBHOOK_SERVICE_HOST": "10.0.0.1",
        "GATEWRIGHT_WEBHOOK_SERVICE_PORT": "443",
        "GATEWRIGHT_WEBHOOK_SERVICE_PORT_HTTPS": "443",
        "GATEWRIGHT_WEBHOOK_PORT": "tcp://10.0.0.1:443",
        "GATEWRIGHT_WEBHOOK_PORT_443_TCP": "tcp://10.0.0.1:443",
        "GATEWRIGHT_WEBHOOK_PORT_443_TCP_PROTO": "tcp",
        "GATEWRIGHT_WEBHOOK_PORT_443_TCP_PORT": "443",
        "GATEWRIGHT_WEBHOOK_PORT_443_TCP_ADDR": "10.0.0.1",
        "GATEWRIGHT_PORT": "tcp://10.0.0.1:443",
        "GATEWRIGHT_SERVICE_HOST": "10.0.0.1",
    }
    assert load_settings({}, environment=environment) == Settings.model_construct()


def test_all_errors_of_a_file_are_reported(file):
    """Each has its line, and an unknown key a suggestion."""
    file.write_text("workers: many\nlease-nam: x\nlisten: 9443\nkinds: [1]\npolicies: 7\n")
    with pytest.raises(DocumentError) as error:
        load_settings({}, file, {})
    assert sorted(str(error.value).split("\n")) == [
        f'{file}:1: workers: "many": should be a valid integer, unable to parse string as an integer',
        f'{file}:2: lease-nam: unknown setting; did you mean "lease_name"?',
        f"{file}:3: listen: 9443: must be an address of the form HOST:PORT, or :PORT for every interface",
        f"{file}:4: kinds: 1: should be a valid string",
        f"{file}:5: policies: 7: should be a path",
    ]


@pytest.mark.parametrize("text", ["- a\n", "a\n", "workers: 1\n---\nworkers: 2\n"])
def test_a_settings_file_is_one_object(text, file):
    """Anything else is rejected."""
    file.write_text(text)
    with pytest.raises(DocumentError) as error:
        load_settings({}, file, {})
    assert str(error.value) == f"{file}: a settings file is one YAML object"


@pytest.mark.parametrize("text", ["# workers: 3\n", "policies:\n"])
def test_an_empty_file_sets_nothing(text, file):
    """A file without settings, and a list without items, keep the defaults."""
    file.write_text(text)
    assert load_settings({}, file, {}).model_dump() == Settings.model_construct().model_dump()
