"""The command line: exit codes, whole messages, and never a traceback."""

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
from config.presets import presets
from gatewright import __version__, commands
from gatewright.cli import COMMANDS, TOOLS, main
from webhook.policy_sets.catalogue import catalogue

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
VIOLATION = (
    "spec.replicas: 11; production workloads cannot exceed 10 replicas. Set it to 10 or less."
)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Change to a temporary directory, with an environment without settings."""
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
    """Write a file in the test's directory."""
    Path(name).write_text(text)
    return name


def test_the_installed_command_runs():
    """The entry point exists in this environment."""
    found = subprocess.run(
        [Path(sys.executable).parent / "gatewright", "version"], capture_output=True, text=True
    )
    assert (found.returncode, found.stdout, found.stderr) == (0, f"gatewright {__version__}\n", "")


def test_version(run):
    """The version is one line."""
    assert run("version") == (0, f"gatewright {__version__}\n", "")
    assert run("--version") == (0, f"gatewright {__version__}\n", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed(run, shell):
    """It exists for each shell that click supports."""
    code, out, err = run("completion", shell)
    assert (code, f"_GATEWRIGHT_COMPLETE={shell}_complete" in out, err) == (0, True, "")


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("gatewright ch", "plain,check\n"),
        ("gatewright test --pol", "plain,--policies\nplain,--policies-dir\n"),
    ],
)
def test_the_shell_completes_commands_and_options(run, monkeypatch, words, completed):
    """The test uses click's completion protocol."""
    monkeypatch.setenv("_GATEWRIGHT_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    assert run() == (0, completed, "")


def test_every_command_is_listed(run):
    """The help lists exactly the existing commands."""
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    listed = [line.split()[0] for line in out.partition("Commands:\n")[2].splitlines()]
    assert listed == [*COMMANDS, *TOOLS]
    assert {module.name for module in pkgutil.iter_modules(commands.__path__)} == set(COMMANDS)


NO_NAMESPACE = "is not a valid name of a namespace: at most 63 lower-case letters, digits and '-'"


@pytest.mark.parametrize("command", [*COMMANDS, *TOOLS])
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_every_command_has_a_help(run, command, flag):
    """The help loads neither configuration nor files."""
    code, out, err = run(command, flag)
    assert (code, err) == (0, "")
    assert out.startswith(f"Usage: gatewright {command} ")


@pytest.mark.parametrize(
    ("arguments", "usage", "error"),
    [
        (["chek"], "", 'no command "chek"; did you mean "check"?'),
        (["check"], " check", "Missing argument 'MANIFEST…', --reviews or --kubeconfig."),
        (
            ["check", "--outptu", "x", "y"],
            " check",
            "No such option '--outptu'. Did you mean '--output'?",
        ),
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
        (
            ["check", "-o", "json=", "y"],
            " check",
            "Invalid value for '-o' / '--output': an empty file name",
        ),
        (
            ["check", "-o", "json=all", "-o", "junit=./all", "y"],
            " check",
            "Invalid value for '-o' / '--output': only one format can go to all, not json and junit",
        ),
        (
            ["check", "-n", "Production", "y"],
            " check",
            f"Invalid value for '-n' / '--namespace': \"Production\" {NO_NAMESPACE}",
        ),
        (
            ["check", "--namespace-labels", "Shop=a=b", "y"],
            " check",
            f"Invalid value for '--namespace-labels': \"Shop\" {NO_NAMESPACE}",
        ),
        (
            ["check", "--installed-in", "", "y"],
            " check",
            f"Invalid value for '--installed-in': \"\" {NO_NAMESPACE}",
        ),
        (
            ["rbac", "--namespace", "a b", "WebApp"],
            " rbac",
            f"Invalid value for '--namespace': \"a b\" {NO_NAMESPACE}",
        ),
        (["explain", ""], " explain", "Invalid value for 'POLICY': an empty name"),
        (
            ["export", "vap", "--static", "", "baseline"],
            " export",
            "Invalid value for '--static': an empty name",
        ),
        (
            ["migrate", "--output", "new", "--expires", "2020-01-01", "y"],
            " migrate",
            "Invalid value for '--expires': 2020-01-01 is over",
        ),
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
        (["check", ""], " check", "Invalid value for '[MANIFEST…]': an empty name"),
        (
            ["check", "--policies", "", "y"],
            " check",
            "Invalid value for '--policies': an empty name",
        ),
        (["test", ""], " test", "Invalid value for 'PATH…': an empty name"),
        (["plan", ""], " plan", "Invalid value for 'FILE…': an empty name"),
        (
            ["plan", "--kubeconfig", "", "y"],
            " plan",
            "Invalid value for '--kubeconfig': an empty name",
        ),
        (["certs", ""], " certs", "Invalid value for 'DIRECTORY': an empty name"),
        (
            ["certs", "--ip", "localhost", "out"],
            " certs",
            'Invalid value for --ip: "localhost" is not a valid IP address',
        ),
        (
            ["certs", "--dns", "a b", "out"],
            " certs",
            'Invalid value for --dns: "a b" is not a valid DNS name',
        ),
        (
            ["scaffold", "Gear", "--package", ""],
            " scaffold",
            "Invalid value for '--package': an empty name",
        ),
        (
            ["controller", "--webhook-url", "http://example.com"],
            " controller",
            '--webhook-url: "http://example.com": must be an address of the form https://HOST:PORT',
        ),
    ],
)
def test_a_usage_error_has_the_usage(run, arguments, usage, error):
    """The exit code is 2, with the usage and the error."""
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"Usage: gatewright{usage} ")
    assert err.endswith(HINT.format(usage, error))


def test_a_wrong_environment_variable_is_a_usage_error(run, monkeypatch):
    """A misspelt variable is reported with a suggestion."""
    monkeypatch.setenv("GATEWRIGHT_POLICIS", PRODUCTION)
    code, _, err = run("check", write("good.yaml", GOOD))
    assert code == 2
    assert err.endswith(
        'Error: $GATEWRIGHT_POLICIS: unknown setting; did you mean "GATEWRIGHT_POLICIES"?\n'
    )


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
            {"a.yaml": GOOD, "s.yaml": "policies: baseline\nnamespace: production\n"},
            ["check", "--config", "s.yaml", "a.yaml"],
            "s.yaml:2: namespace: this command does not use the setting",
            id="a settings file with a setting of other commands",
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
            id="a plan with invalid annotations",
        ),
        pytest.param(
            {"a.yaml": "kind: WebApp\n"},
            ["plan", "a.yaml"],
            "a.yaml:1: apiVersion: missing; every Kubernetes object has one",
            id="a plan of an incomplete object",
        ),
        pytest.param(
            {"out/tls.key": "mine"},
            ["certs", "out"],
            "out: tls.key already exist; --force overwrites them",
            id="certificates that exist",
        ),
        pytest.param(
            {"a.yaml": ""}, ["plan", "a.yaml"], "a.yaml: no objects", id="nothing to plan"
        ),
        pytest.param(
            {"a.yaml": GOOD, "p.yaml": "---\n"},
            ["check", "--policies", "p.yaml", "a.yaml"],
            "p.yaml: no policies",
            id="an empty policy set",
        ),
        pytest.param(
            {"a.yaml": GOOD},
            ["check", "--policies-dir", "mine", "a.yaml"],
            "mine: no such directory",
            id="no directory of policies",
        ),
        pytest.param(
            {"a.yaml": WEBAPP, "k.yaml": f"a: {'[' * 1100}"},
            ["plan", "--diff", "--kubeconfig", "k.yaml", "a.yaml"],
            "k.yaml: not YAML",
            id="a truncated kubeconfig",
        ),
    ],
)
def test_an_unusable_file_is_one_line(run, files, arguments, told):
    """The exit code is 3, and the message has the place and the error."""
    for name, text in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        write(name, text)
    code, out, err = run(*arguments)
    assert (code, out, err) == (3, "", f"{told}\n")


def test_every_error_is_a_line(run):
    """All errors are reported, each with its place."""
    write("p.yaml", f"{POLICY}---\nkind: X\n")
    code, _, err = run("check", "--policies", "p.yaml", write("a.yaml", GOOD))
    assert (code, [line.partition(" ")[0] for line in err.splitlines()]) == (
        3,
        ["p.yaml:7:", "p.yaml:9:"],
    )


def test_a_plan_is_yaml(run):
    """It has all children, step by step, in machine-readable form."""
    code, out, err = run("plan", write("shop.yaml", WEBAPP))
    assert (code, err) == (0, "")
    made = [(each["kind"], each["metadata"]["name"]) for each in yaml.safe_load_all(out)]
    assert made == [("Deployment", "shop"), ("Service", "shop")]
    assert [line for line in out.splitlines() if line.startswith("#")] == [
        "# WebApp shop: step deployment",
        "# WebApp shop: step service",
    ]


def test_plan_reads_standard_input(run, monkeypatch):
    """`-` works as in check and kubectl -f."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(WEBAPP.encode())))
    code, out, err = run("plan", "-")
    assert (code, out.splitlines()[0], err) == (0, "# WebApp shop: step deployment", "")


def test_an_error_in_one_object_does_not_hide_other_plans(run):
    """Each incomplete object is reported on stderr, and the others are planned."""
    lacking = "apiVersion: voting.schoolofdevops.com/v1\nkind: VoteConfig\nmetadata: {name: x}\n"
    application = "apiVersion: config.example.com/v1\nkind: AppConfig\nmetadata: {name: z}\n"
    code, out, err = run("plan", write("shop.yaml", "---\n".join((lacking, WEBAPP, application))))
    assert (code, [each["kind"] for each in yaml.safe_load_all(out)]) == (
        3,
        ["Deployment", "Service"],
    )
    assert [line.partition(":")[0] for line in err.splitlines()] == ["VoteConfig x", "AppConfig z"]


def test_an_unreadable_file_does_not_hide_other_plans(run):
    """Each unreadable or invalid file is reported on stderr, and the others are planned."""
    Path("app").mkdir()
    write("app/a.yaml", "a: [\n")
    write("app/b.yaml", WEBAPP.replace("image", "imag"))
    write("app/c.yaml", WEBAPP)
    code, out, err = run("plan", "app", "none.yaml")
    assert (code, [each["kind"] for each in yaml.safe_load_all(out)]) == (
        3,
        ["Deployment", "Service"],
    )
    assert err.splitlines() == [
        "app/a.yaml:1: not YAML: expected the node content, but found '<stream end>'",
        "none.yaml: No such file or directory",
        "app/b.yaml:4: spec.image: missing; it is required",
        'app/b.yaml:4: spec.imag: unknown field; did you mean "image"?',
    ]


def test_a_name_adds_no_object_to_a_plan(run):
    """Its line breaks are escaped in comments, in the header of a diff and in the verdict."""
    name = r"a\n---\nkind: Secret\x1b"
    file = write("shop.yaml", WEBAPP.replace("name: shop", rf'name: "{name}"'))
    code, out, err = run("plan", file)
    assert (code, [each["kind"] for each in yaml.safe_load_all(out)]) == (
        1,
        ["Deployment", "Service"],
    )
    assert out.startswith(f"# WebApp {name}: step deployment\n")
    assert err.startswith(rf"shop.yaml:1: WebApp production/{name}: denied")
    header = f"--- apps/v1 Deployment production/{name} (there)\n"
    assert run("plan", "--diff", file)[1].startswith(header)


POLL = """\
apiVersion: voting.schoolofdevops.com/v1alpha1
kind: VoteConfig
metadata: {name: pets}
spec:
  options: [{id: cats}]
  question: 5
"""


def test_fields_have_the_names_of_the_written_version(run):
    """An error names the field and the line of the manifest, although the stored version has another path."""
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


def test_the_namespace_of_gatewright_is_an_option(run):
    """Its exceptions count, and the controller's account is there."""
    exception = {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "PolicyException",
        "metadata": {"name": "sale", "namespace": "gates"},
        "spec": {
            "reason": "sale",
            "expires": "2999-01-01T00:00:00Z",
            "exceptions": [{"policy": "replica-limits"}],
        },
    }
    write("p.yaml", f"{ON_DEPLOYMENTS}---\n{json.dumps(exception)}\n")
    write("shop.yaml", WEBAPP.replace("replicas: 3", "replicas: 4"))
    assert run("check", "--policies", "p.yaml", "shop.yaml")[0] == 1
    assert run("check", "--policies", "p.yaml", "--installed-in", "gates", "shop.yaml")[0] == 0


def test_a_plan_shows_the_webhooks_verdict(run):
    """The plan is printed; the denial goes to stderr and sets the exit code."""
    write("p.yaml", ON_DEPLOYMENTS)
    code, out, err = run(
        "plan",
        "--policies",
        "p.yaml",
        write("shop.yaml", WEBAPP.replace("replicas: 3", "replicas: 4")),
    )
    assert (code, len(list(yaml.safe_load_all(out)))) == (1, 2)
    assert err == (
        "shop.yaml:1: WebApp production/shop: denied\n"
        "  shop.yaml:4: replica-limits: spec.replicas: 4; production workloads cannot exceed 3 replicas. Set it to 3 "
        "or less.\n"
    )


def test_a_plan_uses_the_mutated_parent(run):
    """Fields that policies set on the parent appear in its children."""
    write(
        "p.yaml",
        POLICY.replace("replica-limits", "webapp-security-defaults").partition("  params")[0],
    )
    code, out, _ = run("plan", "--policies", "p.yaml", write("shop.yaml", WEBAPP))
    deployment, _ = yaml.safe_load_all(out)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert (code, container["securityContext"]["runAsUser"]) == (0, 1000)


def test_without_a_kubeconfig_all_objects_are_new(run):
    """--diff alone compares with nothing and connects to no cluster."""
    code, out, err = run("plan", "--diff", write("shop.yaml", WEBAPP))
    assert (code, err) == (0, "note: without --kubeconfig, every object is shown as new\n")
    assert [line for line in out.splitlines() if line.startswith(("+++", "-"))] == [
        "--- apps/v1 Deployment production/shop (there)",
        "+++ apps/v1 Deployment production/shop (planned)",
        "--- v1 Service production/shop (there)",
        "+++ v1 Service production/shop (planned)",
    ]


def test_objects_of_other_groups_are_not_planned(run):
    """A file may contain other objects, which are counted."""
    both = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop}}\n---\n{WEBAPP}"
    code, out, err = run("plan", write("shop.yaml", both))
    assert (code, [each["kind"] for each in yaml.safe_load_all(out)], err) == (
        0,
        ["Deployment", "Service"],
        "note: 1 Namespace: not planned: the controller creates nothing for them\n",
    )


def test_every_preset_and_policy_is_listed(run):
    """Each has a line."""
    code, out, err = run("policies")
    assert (code, err) == (0, "")
    named, *tables = (part.splitlines() for part in out.split("\n\n"))
    assert [line.split()[0] for line in named] == ["PRESET", *presets(), "all"]
    titles = ("POLICY", "OF OWN KINDS")
    for always, title, policies in zip((False, True), titles, tables, strict=True):
        assert policies[0].split() == [*title.split(), "CATEGORY", "DOES", "SUMMARY"]
        assert [line.split()[0] for line in policies[1:]] == sorted(
            name for name, policy in catalogue().items() if policy.always is always
        )


def test_a_preset_is_explained_and_compared_by_its_name(run, tmp_path):
    """A case file's `policies` can name the preset, too."""
    assert run("explain", "baseline")[1].startswith("baseline\n")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "it"},
        "spec": {"containers": [{"name": "app", "image": "nginx:1"}]},
    }
    (tmp_path / "pod.json").write_text(json.dumps(pod))
    code, out, err = run("impact", "baseline", "restricted", str(tmp_path / "pod.json"))
    assert (code, out.splitlines()[-1], err) == (1, "1 object: 1 newly denied", "")
    cases = {"policies": "baseline", "cases": [{"name": "it", "object": pod, "expect": "allowed"}]}
    (tmp_path / "it.cases.json").write_text(json.dumps(cases))
    assert run("test", str(tmp_path / "it.cases.json"))[1] == "1 case: 1 passed\n"


UNBOUND = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: replicas}
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}
  validations: [{expression: object.spec.replicas <= 3}]
"""
BINDING = """\
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: replicas}
spec: {policyName: replicas}
"""


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (
            UNBOUND,
            "Not in force: no ValidatingAdmissionPolicyBinding beside it names this ValidatingAdmissionPolicy.",
        ),
        (
            UNBOUND + BINDING,
            "Rules in CEL, written in the policy object.\n\n- object.spec.replicas <= 3",
        ),
    ],
    ids=["without a binding", "bound"],
)
def test_explain_shows_whether_a_policy_of_kubernetes_is_in_force(run, tmp_path, written, shown):
    """It lists the rules of a policy that a binding puts in force."""
    (tmp_path / "replicas.yaml").write_text(written)
    code, out, err = run("explain", str(tmp_path / "replicas.yaml"))
    assert (code, err) == (0, "")
    assert out.startswith(f"replicas\n\n{shown}\n")


def test_explain_names_the_flag_of_policies_that_read_registries(run):
    """Pages of other policies do not name it."""
    line = "Reads registries: in `check` and `impact` only with --registry-access."
    pages = {name: run("explain", name)[1] for name in ("image-signatures", "image-tags")}
    assert [line in page for page in pages.values()] == [True, False]


def test_explain_prints_every_policys_page(run):
    """The page is the documentation and the parameters."""
    for name, policy in catalogue().items():
        code, out, err = run("explain", name)
        assert (code, err) == (0, "")
        page, _, more = out.partition("\n\nApplies to: ")
        assert page == f"{name}\n\n{policy.documentation}"
        for field, about in policy.params.model_fields.items():
            assert field in more
            assert about.description in more


def test_crds_are_those_of_the_repository(run):
    """The output is the committed files, one document each."""
    code, out, err = run("crds")
    assert (code, err) == (0, "")
    committed = [
        file.read_text() for file in sorted((ROOT / "config" / "crd" / "bases").glob("*.yaml"))
    ]
    assert sorted(out.split("---\n")) == sorted(committed)


def mode(file):
    """Return the mode of a file."""
    return stat.S_IMODE(Path(file).stat().st_mode)


def test_certs_creates_a_pair_and_its_authority(run):
    """Only the owner can read the keys, and the pair is valid for the requested names."""
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


def test_certs_overwrites_only_with_force(run):
    """Existing files stay; --force replaces them, and a world-readable key becomes private again."""
    assert run("certs", "out")[0] == 0
    Path("out/tls.key").chmod(0o644)
    before = Path("out/tls.key").read_bytes()
    assert run("certs", "out")[0] == 3
    assert Path("out/tls.key").read_bytes() == before
    code, out, _ = run("certs", "--force", "out")
    assert (code, out.splitlines()[1].endswith(", for localhost, 127.0.0.1")) == (0, True)
    assert Path("out/tls.key").read_bytes() != before
    assert mode("out/tls.key") == 0o600


def test_certs_reports_an_unwritable_directory(run):
    """A file in place of the directory is a usage error."""
    write("out", "")
    code, out, err = run("certs", "out")
    assert (code, out) == (2, "")
    assert err.endswith("Error: Invalid value for 'DIRECTORY': Directory 'out' is a file.\n")


def test_the_help_of_completion_keeps_its_lines(run):
    """One for each shell."""
    _, out, _ = run("completion", "--help")
    assert '  bash: eval "$(gatewright completion bash)"      in ~/.bashrc\n' in out


def test_a_table_in_a_file_is_not_printed_too(run, tmp_path):
    """Nothing is printed if the table goes to a file."""
    (tmp_path / "pod.yaml").write_text(CONFIG_MAP)
    code, out, _ = run(
        "check", "--policies", "baseline", f"-otable={tmp_path}/t.txt", str(tmp_path / "pod.yaml")
    )
    assert (code, out) == (0, "")
    assert (tmp_path / "t.txt").read_text() == "1 object: 1 unmatched\n"


def test_a_module_is_not_explained_as_yaml(run, tmp_path):
    """Its policy is, by name."""
    (tmp_path / "own.py").touch()
    code, _, err = run("explain", str(tmp_path / "own.py"))
    assert (code, err.splitlines()[-1]) == (
        2,
        f"Error: Invalid value for POLICY: {tmp_path}/own.py is a module; name its policy, and its directory by "
        "--policies-dir",
    )
