"""The command line as people and pipelines meet it: exit codes, whole texts, and never a traceback."""

import io
import json
import os
import pkgutil
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from certs import KeyPair, check
from gatewright import __version__, commands
from gatewright.cli import COMMANDS, main
from webhook.policies import catalogue

ROOT = Path(__file__).parents[2]
PRODUCTION = str(ROOT / "config" / "policies" / "production.yaml")
HINT = "Try 'gatewright{} --help' for help.\n\nError: {}\n"

BAD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: production}
spec:
  replicas: 11
  template:
    spec:
      containers: [{name: app, image: registry.company.com/shop:1, resources: {limits: {cpu: 1, memory: 1Gi}}}]
"""
GOOD = BAD.replace("11", "3")
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
WEBAPP = """\
apiVersion: example.com/v1
kind: WebApp
metadata: {name: shop, namespace: production}
spec: {replicas: 3, image: registry.company.com/shop:1}
"""
VIOLATION = "spec.replicas: 11; production workloads cannot exceed 10 replicas. Set it to 10 or less."


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """A directory of the test's own, and an environment without settings."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("GATEWRIGHT_", "KUBECONFIG"))]:
        monkeypatch.delenv(name)


@pytest.fixture
def run(capsys):
    """Run the command line; return exit code, stdout and stderr."""

    def _run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(each) for each in arguments])
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return _run


def write(name, text):
    """Write a file into the directory of the test."""
    Path(name).write_text(text)
    return name


def test_the_installed_command_runs():
    """The entry point is there, in the environment this is installed in."""
    found = subprocess.run([Path(sys.executable).parent / "gatewright", "version"], capture_output=True, text=True)
    assert (found.returncode, found.stdout, found.stderr) == (0, f"gatewright {__version__}\n", "")


def test_version(run):
    """The version is one line."""
    assert run("version") == (0, f"gatewright {__version__}\n", "")
    assert run("--version") == (0, f"gatewright {__version__}\n", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed(run, shell):
    """For each of the shells that click knows."""
    code, out, err = run("completion", shell)
    assert (code, f"_GATEWRIGHT_COMPLETE={shell}_complete" in out, err) == (0, True, "")


@pytest.mark.parametrize(
    ("words", "completed"),
    [("gatewright ch", "plain,check\n"), ("gatewright test --pol", "plain,--policies-dir\n")],
)
def test_the_shell_completes_commands_and_options(words, completed):
    """By what click gives shells to ask."""
    command = Path(sys.executable).parent / "gatewright"
    asked = {"_GATEWRIGHT_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    found = subprocess.run([command], env={**os.environ, **asked}, capture_output=True, text=True)
    assert (found.returncode, found.stdout, found.stderr) == (0, completed, "")


def test_every_command_is_listed(run):
    """The help names the commands that there are, and no other."""
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    listed = [line.split()[0] for line in out.partition("Commands:\n")[2].splitlines()]
    assert listed == list(COMMANDS)
    assert {module.name for module in pkgutil.iter_modules(commands.__path__)} == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_every_command_explains_itself(run, command, flag):
    """Each command has a help, which costs nothing but to ask."""
    code, out, err = run(command, flag)
    assert (code, err) == (0, "")
    assert out.startswith(f"Usage: gatewright {command} ")


@pytest.mark.parametrize(
    ("arguments", "usage", "error"),
    [
        (["chek"], "", 'no command "chek"; did you mean "check"?'),
        (["check"], " check", "Missing argument 'MANIFEST…'."),
        (["check", "--outptu", "x", "y"], " check", "No such option '--outptu'. Did you mean '--output'?"),
        (
            ["check", "-o", "jsn", "y"],
            " check",
            "Invalid value for '-o' / '--output': no format \"jsn\"; did you mean \"json\"?",
        ),
        (
            ["check", "-o", "json", "-o", "table", "y"],
            " check",
            "Invalid value for '-o' / '--output': only one format can go to standard output, not json and table",
        ),
        (["check", "-o", "json=", "y"], " check", "Invalid value for '-o' / '--output': an empty file name"),
        (
            ["check", "--namespace-labels", "a", "y"],
            " check",
            "Invalid value for '--namespace-labels': \"a\" is not of the form NAMESPACE=KEY=VALUE,KEY=VALUE",
        ),
        (
            ["check", "--fail-on", "all", "y"],
            " check",
            "Invalid value for '--fail-on': 'all' is not one of 'deny', 'warn', 'never'.",
        ),
        (["test"], " test", "Missing argument 'PATH…'."),
        (["plan"], " plan", "Missing argument 'FILE…'."),
        (["certs"], " certs", "Missing argument 'DIRECTORY'."),
        (
            ["explain", "replica-limit"],
            " explain",
            'Invalid value for POLICY: no policy "replica-limit"; did you mean "replica-limits"?',
        ),
        (["version", "now"], " version", "Got unexpected extra argument (now)"),
        (["check", ""], " check", "Invalid value for 'MANIFEST…': an empty name"),
        (["check", "--policies", "", "y"], " check", "Invalid value for '--policies': an empty name"),
        (["test", ""], " test", "Invalid value for 'PATH…': an empty name"),
        (["plan", ""], " plan", "Invalid value for 'FILE…': an empty name"),
        (["plan", "--kubeconfig", "", "y"], " plan", "Invalid value for '--kubeconfig': an empty name"),
        (["certs", ""], " certs", "Invalid value for 'DIRECTORY': an empty name"),
        (
            ["certs", "--ip", "localhost", "out"],
            " certs",
            'Invalid value for --ip: "localhost" is not a valid IP address',
        ),
        (["certs", "--dns", "a b", "out"], " certs", 'Invalid value for --dns: "a b" is not a valid DNS name'),
        (["scaffold", "Gear", "--package", ""], " scaffold", "Invalid value for '--package': an empty name"),
        (
            ["controller", "--webhook-url", "http://example.com"],
            " controller",
            '--webhook-url: "http://example.com": must be an address of the form https://HOST:PORT',
        ),
    ],
)
def test_a_wrong_command_line_is_told(run, arguments, usage, error):
    """Exit code 2: how it is used, and what was wrong."""
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"Usage: gatewright{usage} ")
    assert err.endswith(HINT.format(usage, error))


def test_a_wrong_setting_in_the_environment_is_told(run, monkeypatch):
    """A misspelt variable is a wrong command line."""
    monkeypatch.setenv("GATEWRIGHT_POLICIS", PRODUCTION)
    code, _, err = run("check", write("good.yaml", GOOD))
    assert code == 2
    assert err.endswith('Error: $GATEWRIGHT_POLICIS: unknown setting; did you mean "GATEWRIGHT_POLICIES"?\n')


POLICY = (
    "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata:\n  name: replica-limits\n"
    "spec:\n  policy: replica-limits\n  params: {maximun: 3}\n"
)


@pytest.mark.parametrize(
    ("files", "arguments", "told"),
    [
        pytest.param(
            {"policies.yaml": POLICY, "shop.yaml": GOOD},
            ["check", "--policies", "policies.yaml", "shop.yaml"],
            "policies.yaml:7: ClusterAdmissionPolicy replica-limits: spec.params.maximun: unknown parameter; "
            'did you mean "maximum"?',
            id="a policy set with a typo",
        ),
        pytest.param(
            {"a.yaml": GOOD},
            ["check", "--policies", "none.yaml", "a.yaml"],
            "none.yaml: No such file or directory",
            id="no policy set",
        ),
        pytest.param(
            {"a.yaml": GOOD},
            ["check", "--config", "none.yaml", "a.yaml"],
            "none.yaml: No such file or directory",
            id="no settings file",
        ),
        pytest.param(
            {"a.yaml": GOOD, "s.yaml": "policis: x\n"},
            ["check", "--config", "s.yaml", "a.yaml"],
            's.yaml:1: policis: unknown setting; did you mean "policies"?',
            id="a settings file with a typo",
        ),
        pytest.param(
            {"a.yaml": WEBAPP.replace("image", "imag")},
            ["plan", "a.yaml"],
            'a.yaml:4: spec.image: missing; it is required\na.yaml:4: spec.imag: unknown field; did you mean "image"?',
            id="a wrong spec",
        ),
        pytest.param(
            {"a.yaml": WEBAPP.replace("WebApp", "WebAp")},
            ["plan", "a.yaml"],
            'a.yaml:2: kind: example.com/v1 has no kind "WebAp"; did you mean "WebApp"?',
            id="a kind with a typo",
        ),
        pytest.param(
            {"a.yaml": WEBAPP.replace("name: shop, ", "")},
            ["plan", "a.yaml"],
            "a.yaml:3: metadata.name: missing; the children are named after it",
            id="a plan without a name",
        ),
        pytest.param(
            {"a.yaml": WEBAPP.replace("name: shop", "annotations: {a: 1}, name: shop")},
            ["plan", "a.yaml"],
            "a.yaml:3: metadata.annotations.a: 1: should be a valid string",
            id="a plan with annotations that are none",
        ),
        pytest.param(
            {"a.yaml": "kind: WebApp\n"},
            ["plan", "a.yaml"],
            "a.yaml:1: apiVersion: missing; every Kubernetes object has one",
            id="a plan of half an object",
        ),
        pytest.param(
            {"out/tls.key": "mine"},
            ["certs", "out"],
            "out: tls.key already exist; --force overwrites them",
            id="certificates that are there",
        ),
        pytest.param({"a.yaml": ""}, ["plan", "a.yaml"], "a.yaml: no objects", id="nothing to plan"),
        pytest.param(
            {"a.yaml": GOOD, "p.yaml": "---\n"},
            ["check", "--policies", "p.yaml", "a.yaml"],
            "p.yaml: no policies",
            id="a policy set with nothing in it",
        ),
        pytest.param(
            {"a.yaml": GOOD},
            ["check", "--policies-dir", "mine", "a.yaml"],
            "mine: no such directory",
            id="no directory of policies",
        ),
        pytest.param(
            {"a.yaml": WEBAPP, "k.yaml": f"a: {'[' * 2000}"},
            ["plan", "--diff", "--kubeconfig", "k.yaml", "a.yaml"],
            "k.yaml: not YAML",
            id="a kubeconfig without an end",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_told_in_one_line(run, files, arguments, told):
    """Exit code 3: where it is, what is wrong, and nothing else."""
    for name, text in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        write(name, text)
    code, out, err = run(*arguments)
    assert (code, out, err) == (3, "", f"{told}\n")


def test_every_fault_is_a_line(run):
    """All at once, each with its place."""
    write("p.yaml", f"{POLICY}---\nkind: X\n")
    code, _, err = run("check", "--policies", "p.yaml", write("a.yaml", GOOD))
    assert (code, [line.partition(" ")[0] for line in err.splitlines()]) == (3, ["p.yaml:7:", "p.yaml:9:"])


def test_a_plan_is_yaml(run):
    """Everything that would be made, step by step, ready to be read by a machine."""
    code, out, err = run("plan", write("shop.yaml", WEBAPP))
    assert (code, err) == (0, "")
    made = [(each["kind"], each["metadata"]["name"]) for each in yaml.safe_load_all(out)]
    assert made == [("Deployment", "shop"), ("Service", "shop")]
    assert [line for line in out.splitlines() if line.startswith("#")] == [
        "# WebApp shop: step deployment",
        "# WebApp shop: step service",
    ]


def test_plan_reads_standard_input(run, monkeypatch):
    """As check does, and kubectl with -f -."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(WEBAPP.encode())))
    code, out, err = run("plan", "-")
    assert (code, out.splitlines()[0], err) == (0, "# WebApp shop: step deployment", "")


def test_what_cannot_be_planned_keeps_nothing_else_from_being_printed(run):
    """Every object that lacks something is named on stderr, and the others are planned."""
    lacking = "apiVersion: voting.schoolofdevops.com/v1\nkind: VoteConfig\nmetadata: {name: x}\n"
    application = "apiVersion: config.example.com/v1\nkind: AppConfig\nmetadata: {name: y}\n"
    code, out, err = run("plan", write("shop.yaml", "---\n".join((lacking, WEBAPP, application))))
    assert (code, [each["kind"] for each in yaml.safe_load_all(out)]) == (3, ["Deployment", "Service"])
    assert [line.partition(":")[0] for line in err.splitlines()] == ["VoteConfig x", "AppConfig y"]


POLL = """\
apiVersion: voting.schoolofdevops.com/v1alpha1
kind: VoteConfig
metadata: {name: pets}
spec:
  options: [{id: cats}]
  question: 5
"""


def test_fields_are_called_as_in_the_version_that_was_written(run):
    """A field that the stored version has elsewhere is named where it stands in the file, and on its line."""
    file = write("pets.yaml", POLL)
    code, out, _ = run("check", "--policies", PRODUCTION, file)
    assert (code, out.splitlines()) == (
        1,
        [
            "denied  VoteConfig default/pets  (pets.yaml:1)",
            "  pets.yaml:6: voteconfig-rules: spec.question: 5 is an integer; it must be a string. Correct its type.",
            "  pets.yaml:6: voteconfig-schema: spec.question: 5; should be a valid string. Correct it.",
            "1 object: 1 denied",
        ],
    )
    assert run("plan", file) == (3, "", "pets.yaml:6: spec.question: 5: should be a valid string\n")
    write("pets.yaml", POLL.replace("  question: 5\n", ""))
    assert run("plan", file) == (3, "", "VoteConfig pets: spec.question: must be set\n")


ON_DEPLOYMENTS = POLICY.replace("maximun", "maximum") + "  match: {any: [{kinds: [Deployment]}]}\n"


def test_the_namespace_that_gatewright_is_installed_in_can_be_said(run):
    """Exceptions count there, and the controller that makes things has its account there."""
    exception = {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "PolicyException",
        "metadata": {"name": "sale", "namespace": "gates"},
        "spec": {"reason": "sale", "expires": "2999-01-01T00:00:00Z", "exceptions": [{"policy": "replica-limits"}]},
    }
    write("p.yaml", f"{ON_DEPLOYMENTS}---\n{json.dumps(exception)}\n")
    write("shop.yaml", WEBAPP.replace("replicas: 3", "replicas: 4"))
    assert run("check", "--policies", "p.yaml", "shop.yaml")[0] == 1
    assert run("check", "--policies", "p.yaml", "--installed-in", "gates", "shop.yaml")[0] == 0


def test_a_plan_says_what_the_webhook_would_say(run):
    """What would be made is printed all the same; the denial goes to stderr, and is the exit code."""
    write("p.yaml", ON_DEPLOYMENTS)
    code, out, err = run(
        "plan", "--policies", "p.yaml", write("shop.yaml", WEBAPP.replace("replicas: 3", "replicas: 4"))
    )
    assert (code, len(list(yaml.safe_load_all(out)))) == (1, 2)
    assert err == (
        "shop.yaml:1: WebApp production/shop: denied\n"
        "  shop.yaml:4: replica-limits: spec.replicas: 4; production workloads cannot exceed 3 replicas. Set it to 3 "
        "or less.\n"
    )


def test_a_plan_is_made_of_what_our_policies_leave(run):
    """What policies set on the parent is in what is made of it."""
    write("p.yaml", POLICY.replace("replica-limits", "webapp-security-defaults").partition("  params")[0])
    code, out, _ = run("plan", "--policies", "p.yaml", write("shop.yaml", WEBAPP))
    deployment, _ = yaml.safe_load_all(out)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert (code, container["securityContext"]["runAsUser"]) == (0, 1000)


def test_without_a_kubeconfig_all_of_a_plan_is_new(run):
    """--diff alone compares with nothing, and never looks for a cluster."""
    code, out, err = run("plan", "--diff", write("shop.yaml", WEBAPP))
    assert (code, err) == (0, "")
    assert [line for line in out.splitlines() if line.startswith(("+++", "-"))] == [
        "--- apps/v1 Deployment production/shop (there)",
        "+++ apps/v1 Deployment production/shop (planned)",
        "--- v1 Service production/shop (there)",
        "+++ v1 Service production/shop (planned)",
    ]


def test_what_stands_beside_ours_is_not_planned(run):
    """Objects of other groups in a file are for others."""
    both = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop}}\n---\n{WEBAPP}"
    code, out, err = run("plan", write("shop.yaml", both))
    assert (code, [each["kind"] for each in yaml.safe_load_all(out)], err) == (0, ["Deployment", "Service"], "")


def test_explain_lists_every_policy(run):
    """A line for each, and no policy forgotten."""
    code, out, err = run("explain")
    assert (code, err) == (0, "")
    head, *lines = out.splitlines()
    assert head.split() == ["POLICY", "CATEGORY", "DOES", "SUMMARY"]
    assert [line.split()[0] for line in lines] == sorted(catalogue())


def test_explain_explains_every_policy(run):
    """A policy's page is its documentation and its parameters."""
    for name, policy in catalogue().items():
        code, out, err = run("explain", name)
        assert (code, err) == (0, "")
        page, _, more = out.partition("\n\nApplies to: ")
        assert page == f"{name}\n\n{policy.documentation}"
        for field, about in policy.params.model_fields.items():
            assert field in more
            assert about.description in more


def test_crds_are_those_of_the_repository(run):
    """What is printed is what is committed, one document each."""
    code, out, err = run("crds")
    assert (code, err) == (0, "")
    committed = [file.read_text() for file in sorted((ROOT / "config" / "crd" / "bases").glob("*.yaml"))]
    assert sorted(out.split("---\n")) == sorted(committed)


def mode(file):
    """Return who may do what with a file."""
    return stat.S_IMODE(Path(file).stat().st_mode)


def test_certs_are_a_pair_and_its_authority(run):
    """Both keys are the owner's alone, and the pair is good for the names it was asked for."""
    code, out, err = run("certs", "--dns", "hook.svc", "--ip", "10.0.0.1", "out/tls")
    assert (code, err) == (0, "")
    ca, tls = out.splitlines()
    assert ca.startswith("out/tls/ca.crt   valid until ")
    assert ca.endswith("; register it as caBundle")
    assert tls.startswith("out/tls/tls.crt  valid until ")
    assert tls.endswith(", for hook.svc, 10.0.0.1")
    modes = {file.name: mode(file) for file in Path("out/tls").iterdir()}
    assert modes == {"ca.crt": 0o644, "ca.key": 0o600, "tls.crt": 0o644, "tls.key": 0o600}
    pair = KeyPair(Path("out/tls/tls.crt").read_bytes(), Path("out/tls/tls.key").read_bytes())
    check(pair, Path("out/tls/ca.crt").read_bytes(), "hook.svc", datetime.now(UTC))


def test_certs_are_replaced_only_by_force(run):
    """What is there stays; with --force it goes, and a key that everybody could read is nobody else's again."""
    assert run("certs", "out")[0] == 0
    Path("out/tls.key").chmod(0o644)
    before = Path("out/tls.key").read_bytes()
    assert run("certs", "out")[0] == 3
    assert Path("out/tls.key").read_bytes() == before
    code, out, _ = run("certs", "--force", "out")
    assert (code, out.splitlines()[1].endswith(", for localhost, 127.0.0.1")) == (0, True)
    assert Path("out/tls.key").read_bytes() != before
    assert mode("out/tls.key") == 0o600


def test_certs_that_cannot_be_written(run):
    """A file where the directory should be is told, as a wrong command line."""
    write("out", "")
    code, out, err = run("certs", "out")
    assert (code, out) == (2, "")
    assert err.endswith("Error: Invalid value for 'DIRECTORY': Directory 'out' is a file.\n")
