"""Unusable files, addresses and command lines: one clear line each, never a traceback."""

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.conftest import CONFIG
from tests.gatewright.started import Gatewright, call, once

pytestmark = pytest.mark.controlplane

POLICIES = ("--policies", str(CONFIG / "policies/production.yaml"))
TYPO = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata:
  name: replica-limits
spec:
  policy: replica-limits
  params:
    maximun: 3
"""
NOWHERE = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "nowhere", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "nobody", "user": {"token": "none"}}],
    "contexts": [{"name": "nowhere", "context": {"cluster": "nowhere", "user": "nobody"}}],
    "current-context": "nowhere",
}


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Gatewright]]:
    """Starts processes, ready or not, and ends them."""
    started: list[Gatewright] = []

    def launch(verb: str, *options: str, kubeconfig: Path | None = None) -> Gatewright:
        started.append(Gatewright(None, tmp_path, verb, *options, kubeconfig=kubeconfig))
        return started[-1].launch()

    yield launch
    for process in started:
        process.kill()
        process.close()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("webhook", *POLICIES),
            "Error: --tls-cert and --tls-key are required; `gatewright certs DIRECTORY` creates a pair. "
            "With a cluster, --tls-secret names the Secret that has one\n",
        ),
        (
            ("run", "--workrs", "3"),
            "Error: No such option '--workrs'. Did you mean '--workers'?\n",
        ),
        (("webhok",), 'Error: no command "webhok"; did you mean "webhook"?\n'),
        (
            ("run", "--listen", "9443"),
            'Error: --listen: "9443": must be an address of the form HOST:PORT, or :PORT for every interface\n',
        ),
        (
            ("controller", "--kinds", "WebAp"),
            'Error: --kinds: no kind "WebAp"; did you mean "WebApp"?\n',
        ),
        (
            ("controller", "--lease-duration", "9s"),
            "Error: leader election: leaseDuration (9 s) must exceed renewDeadline (10 s), "
            "and that retryPeriod (2 s)\n",
        ),
    ],
    ids=[
        "no certificate",
        "unknown option",
        "unknown command",
        "no address",
        "unknown kind",
        "impossible lease",
    ],
)
def test_a_usage_error_is_one_line(
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    said: str,
    tmp_path: Path,
) -> None:
    """The exit code is 2, with the usage and the error."""
    if "controller" in arguments:
        arguments = (*arguments, "--kubeconfig", str(_kubeconfig(tmp_path)))
    ended = call(capsys, *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    usage, _, error = ended.stderr.partition("\n\n")
    assert usage.startswith("Usage: gatewright ")
    assert error == said


def _kubeconfig(directory: Path) -> Path:
    """Write a kubeconfig for an address without a server."""
    file = directory / "kubeconfig"
    file.write_text(yaml.safe_dump(NOWHERE))
    return file


@pytest.mark.parametrize("verb", ["webhook", "run", "controller"])
def test_a_typo_in_a_policy_file_has_its_line(
    capsys: pytest.CaptureFixture[str], verb: str, tmp_path: Path
) -> None:
    """No process starts with an invalid policy set."""
    file = tmp_path / "policies.yaml"
    file.write_text(TYPO)
    options = {
        "webhook": ("--tls-cert", "x", "--tls-key", "x"),
        "controller": ("--webhook-url", "https://x"),
    }
    kubeconfig = str(_kubeconfig(tmp_path))
    own = options.get(verb, ())
    ended = call(capsys, verb, "--policies", str(file), *own, "--kubeconfig", kubeconfig)
    assert (ended.returncode, ended.stdout, ended.stderr) == (
        3,
        "",
        f"{file}:8: ClusterAdmissionPolicy replica-limits: spec.params.maximun: unknown parameter; did you mean "
        '"maximum"?\n',
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "{file}: no such file or directory\n"),
        (
            "clusters: [",
            "{file}:1: not YAML: expected the node content, but found '<stream end>'\n",
        ),
        ("kind: Config", "{file}: no current-context is set; choose one with --context\n"),
        (
            yaml.safe_dump(NOWHERE | {"users": []}),
            '{file}: user "nobody" not found (available: none)\n',
        ),
    ],
    ids=["not there", "not YAML", "no context", "no user"],
)
def test_an_unusable_kubeconfig_is_named(
    capsys: pytest.CaptureFixture[str], content: str | None, said: str, tmp_path: Path
) -> None:
    """The exit code is 3, with the file and the error."""
    file = tmp_path / "kubeconfig"
    if content is not None:
        file.write_text(content)
    for verb in ("controller", "run"):
        ended = call(capsys, verb, *POLICIES, "--kubeconfig", str(file))
        assert (ended.returncode, ended.stdout, ended.stderr) == (3, "", said.format(file=file))


@pytest.mark.parametrize("verb", ["controller", "run"])
def test_an_unreachable_api_server_is_retried(
    start: Callable[..., Gatewright], verb: str, tmp_path: Path
) -> None:
    """The process logs the address and the error, is not ready, keeps running, and ends with 0."""
    process = start(verb, *(POLICIES if verb == "run" else ()), kubeconfig=_kubeconfig(tmp_path))
    reason = "cannot reach the API server at https://127.0.0.1:1: connection refused"
    watch = f"cannot watch webapps: {reason}"
    process.until("told", lambda: any(line["message"] == watch for line in process.logged()))
    code, ready = process.get("/readyz")
    assert code == 503
    assert "webapps" in ready
    assert process.get("/healthz")[0] == 200
    assert process.end() == 0
    assert process.tracebacks() == []


def test_an_unusable_pair_is_reported_until_it_is_replaced(
    start: Callable[..., Gatewright], tmp_path: Path
) -> None:
    """With an invalid certificate, then a key of another pair, it is not ready; afterwards ready without a restart."""
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    for name in ("one", "two"):
        assert once("certs", str(tmp_path / name)).returncode == 0
    key.write_bytes((tmp_path / "two/tls.key").read_bytes())
    certificate.write_text("no certificate\n")
    webhook = start(
        "webhook", *POLICIES, "--no-cluster", "--tls-cert", str(certificate), "--tls-key", str(key)
    )
    _told(webhook, "certificate: the certificate is not valid PEM")
    certificate.write_bytes((tmp_path / "one/tls.crt").read_bytes())
    _told(webhook, "certificate: the private key does not belong to the certificate")
    certificate.write_bytes((tmp_path / "two/tls.crt").read_bytes())
    webhook.until("ready", webhook.is_ready)
    assert webhook.tracebacks() == []


def _told(process: Gatewright, problem: str) -> None:
    """Wait until a process is not ready for this reason."""
    process.until(problem, lambda: f"[-] {problem}\n" in process.get("/readyz")[1])


@pytest.mark.parametrize(
    ("verb", "option", "others"),
    [
        ("webhook", "--listen", "--listen"),
        ("run", "--health-listen", "--metrics-listen or --health-listen"),
    ],
)
def test_a_port_in_use_ends_the_process_with_one_line(
    verb: str, option: str, others: str, tmp_path: Path
) -> None:
    """The exit code is 1; the line has the address, the reason and the option that changes it."""
    assert once("certs", str(tmp_path)).returncode == 0
    (tmp_path / "nowhere").write_text(yaml.safe_dump(NOWHERE))
    of_verb = {
        "webhook": (
            "--no-cluster",
            "--tls-cert",
            str(tmp_path / "tls.crt"),
            "--tls-key",
            str(tmp_path / "tls.key"),
        ),
        "run": ("--kubeconfig", str(tmp_path / "nowhere")),
    }
    free = dict.fromkeys(("--listen", "--health-listen", "--metrics-listen"), "127.0.0.1:0")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        listen = [part for each in (free | {option: address}).items() for part in each]
        ended = once(verb, *POLICIES, *of_verb[verb], *listen)
    assert ended.returncode == 1
    critical = [
        json.loads(line) for line in ended.stderr.splitlines() if '"level":"critical"' in line
    ]
    assert [line["message"].partition(" failed: ")[2] or line["message"] for line in critical] == [
        f"cannot listen on {address}: address already in use; choose another address with {others}"
    ]
    assert "Traceback" not in ended.stderr
