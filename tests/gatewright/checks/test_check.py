"""`gatewright check`: its input, the files it skips, and its exit codes."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gatewright.cli import main

ROOT = Path(__file__).parents[3]
PRODUCTION = str(ROOT / "config" / "policies" / "production.yaml")
BAD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: production}
spec:
  replicas: 11
  template:
    spec:
      containers: [{name: app, image: registry.company.com/shop:1, resources: {limits: {cpu: 1, memory: 1Gi}}}]
    metadata: {labels: {app: shop}}
  selector: {matchLabels: {app: shop}}
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
ON_DEPLOYMENTS = (
    "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata:\n  name: replica-limits\n"
    "spec:\n  policy: replica-limits\n  params: {maximum: 3}\n  match: {any: [{kinds: [Deployment]}]}\n"
)
POLICY = (
    "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {name: few}\n"
    "spec: {policy: replica-limits, validationActions: [%s]}\n"
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


ALL_OF_A_GROUP = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: none}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [example.test], apiVersions: [v1], operations: [CREATE], resources: ["*"]}]
  validations: [{expression: "false", messageExpression: "'no ' + request.kind.kind"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: none}
spec: {policyName: none, validationActions: [Deny]}
"""


@pytest.mark.parametrize(("group", "resource"), [("example.test", '"*"'), ('"*"', "gizmos")])
def test_all_resources_of_a_group_are_those_of_the_manifests_too(check, group, resource):
    """`*` stands for the kinds of a custom group that the files have, without a cluster that serves them."""
    policy = ALL_OF_A_GROUP.replace("[example.test]", f"[{group}]").replace(
        '["*"]}', f"[{resource}]}}"
    )
    Path("none.yaml").write_text(policy)
    Path("gizmo.yaml").write_text(
        "apiVersion: example.test/v1\nkind: Gizmo\nmetadata: {name: it}\n"
    )
    assert check("gizmo.yaml", policies="none.yaml")[:2] == (1, ["denied it"])


@pytest.fixture
def check(run):
    """Check manifests with the production set; return exit code, `VERDICT NAME` of each object, and stderr."""

    def _check(*arguments, policies=PRODUCTION):
        code, out, err = run("check", "--policies", policies, "-o", "json", *arguments)
        return (
            code,
            [f"{each['verdict']} {each['name']}" for each in json.loads(out)["results"]],
            err,
        )

    return _check


def write(name, text):
    """Write a file in the test's directory."""
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text)
    return name


def named(name, text=GOOD):
    """Return a manifest with another name."""
    return text.replace("name: shop", f"name: {name}")


def test_check_denies_a_violation(run):
    """The exit code is 1, and each violation has the line of its field."""
    assert run("check", "--policies", PRODUCTION, write("bad.yaml", BAD)) == (
        1,
        "denied  Deployment production/shop  (bad.yaml:1)\n"
        f"  bad.yaml:5: replica-limits: {VIOLATION}\n"
        "1 object: 1 denied\n",
        "",
    )


def test_check_allows_valid_objects(run, monkeypatch):
    """They are listed on demand, with patches, those without a policy too; policies may come from the environment."""
    monkeypatch.setenv("GATEWRIGHT_POLICIES", PRODUCTION)
    write("all.yaml", f"{GOOD}---\n{CONFIG_MAP}---\n{WEBAPP}")
    assert run("check", "all.yaml") == (0, "3 objects: 1 allowed, 1 unmatched, 1 mutated\n", "")
    code, out, err = run("check", "--all", "all.yaml")
    patches = sorted(line for line in out.splitlines() if line.startswith("  "))
    assert (code, err) == (0, "")
    assert [line for line in out.splitlines() if line not in patches] == [
        "allowed    Deployment production/shop  (all.yaml:1)",
        "unmatched  ConfigMap default/settings  (all.yaml:12)",
        "mutated    WebApp production/shop  (all.yaml:16)",
        "3 objects: 1 allowed, 1 unmatched, 1 mutated",
    ]
    assert patches == [
        '  add /metadata/labels {"managed-by":"webapp-operator","version":"v1"}',
        '  add /spec/securityContext {"runAsNonRoot":true,"runAsUser":1000,"allowPrivilegeEscalation":false}',
    ]


def test_json_has_lines_columns_and_fields(run):
    """Standard output contains only JSON."""
    code, out, err = run("check", "--policies", PRODUCTION, "-o", "json", write("bad.yaml", BAD))
    assert (code, err) == (1, "")
    assert json.loads(out) == {
        "command": "check",
        "summary": {"denied": 1},
        "results": [
            {
                "file": "bad.yaml",
                "line": 1,
                "column": 1,
                "kind": "Deployment",
                "namespace": "production",
                "name": "shop",
                "verdict": "denied",
                "violations": [
                    {
                        "policy": "replica-limits",
                        "check": "",
                        "action": "Deny",
                        "level": "error",
                        "severity": "medium",
                        "category": "capacity",
                        "path": "spec.replicas",
                        "file": "bad.yaml",
                        "line": 5,
                        "column": 3,
                        "message": VIOLATION,
                        "found": "11",
                        "rule": "production workloads cannot exceed 10 replicas",
                        "fix": "set it to 10 or less",
                        "patch": [{"op": "add", "path": "/spec/replicas", "value": 10}],
                        "patch_is_safe": True,
                    }
                ],
                "patch": [],
            }
        ],
        "problems": [],
        "notes": [],
    }


def test_check_reads_standard_input(run, monkeypatch):
    """The test runs `helm template … | gatewright check -`."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    code, out, _ = run("check", "--policies", PRODUCTION, "-")
    assert (code, out.splitlines()[0]) == (1, "denied  Deployment production/shop  (<stdin>:1)")


def test_check_uses_the_default_namespace_given(run):
    """-n sets the namespace of objects without one."""
    write("bad.yaml", BAD.replace(", namespace: production", ""))
    assert run("check", "--policies", PRODUCTION, "-n", "production", "bad.yaml")[0] == 1


def test_an_undecided_object_is_an_error(run):
    """The exit code is 3: the object is neither allowed nor denied."""
    write("shop.yaml", BAD.replace("namespace: production", "namespace: shop"))
    code, out, err = run("check", "--policies", PRODUCTION, "shop.yaml")
    assert (code, err) == (3, "")
    assert out.splitlines()[0] == "error  Deployment shop/shop  (shop.yaml:1)"


def test_children_are_checked_with_their_parent(run):
    """A policy about Deployments denies a WebApp, with the line of the WebApp's field."""
    write("p.yaml", ON_DEPLOYMENTS)
    write("shop.yaml", WEBAPP.replace("replicas: 3", "replicas: 4"))
    code, out, _ = run("check", "--policies", "p.yaml", "-o", "json", "shop.yaml")
    (record,) = json.loads(out)["results"]
    (violation,) = record["violations"]
    assert (code, record["verdict"], violation["path"], violation["line"]) == (
        1,
        "denied",
        "spec.replicas",
        4,
    )


def test_a_schema_violation_has_a_severity(run):
    """A violation of a kind's schema is reported like a policy's."""
    write("shop.yaml", WEBAPP.replace("replicas: 3", "replicas: 11"))
    code, out, _ = run("check", "--policies", PRODUCTION, "-o", "json", "shop.yaml")
    violation = json.loads(out)["results"][0]["violations"][-1]
    assert (
        code,
        violation["policy"],
        violation["severity"],
        violation["category"],
        violation["line"],
    ) == (
        1,
        "webapp-schema",
        "high",
        "kinds",
        4,
    )
    assert (
        violation["message"] == "spec.replicas: 11; should be less than or equal to 10. Correct it."
    )


def test_check_without_policies_is_an_error(run):
    """A forgotten --policies must not look like success."""
    write("good.yaml", GOOD)
    assert run("check", "good.yaml") == (
        3,
        "",
        "no policies given: name policy sets with --policies, or a cluster that has some with --kubeconfig\n",
    )


def test_namespace_labels_come_from_the_option(check):
    """--namespace-labels is used for namespaces without a manifest; a manifest overrides it."""
    write("shop.yaml", BAD.replace("namespace: production", "namespace: shop"))
    assert check("shop.yaml")[0:2] == (3, ["error shop"])
    assert check("--namespace-labels", "shop=environment=production,team=a", "shop.yaml")[0:2] == (
        1,
        ["denied shop"],
    )
    assert check("--namespace-labels", "shop=", "shop.yaml")[0:2] == (0, ["unmatched shop"])
    write("namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
    both = ("shop.yaml", "namespace.yaml")
    assert check("--namespace-labels", "shop=environment=production", *both)[0:2] == (
        0,
        ["unmatched shop", "unmatched shop"],
    )


@pytest.mark.parametrize(
    ("action", "fail_on", "code"),
    [
        ("Deny", "deny", 1),
        ("Deny", "warn", 1),
        ("Deny", "never", 0),
        ("Warn", "deny", 0),
        ("Warn", "warn", 1),
        ("Audit", "deny", 0),
        ("Audit", "warn", 0),
    ],
)
def test_the_failing_level_is_a_choice(run, action, fail_on, code):
    """Denying violations fail by default, warnings with --fail-on warn, audited ones never."""
    write("policies.yaml", POLICY % action)
    assert (
        run("check", "--policies", "policies.yaml", "--fail-on", fail_on, write("bad.yaml", BAD))[0]
        == code
    )


def test_audited_violations_are_listed(run):
    """They are marked as such, since they deny nothing."""
    write("policies.yaml", POLICY % "Audit")
    assert run("check", "--policies", "policies.yaml", write("bad.yaml", BAD)) == (
        0,
        "audited  Deployment production/shop  (bad.yaml:1)\n"
        f"  bad.yaml:5: few (audit): {VIOLATION}\n"
        "1 object: 1 audited\n",
        "",
    )


def test_a_broken_file_hides_no_verdict(run):
    """All other files are judged and reported; the exit code is 3, and standard output is valid JSON."""
    write("app/a.yaml", named("a"))
    write("app/broken.yaml", "a: b\n\tc: d\n")
    write("app/half.yaml", f"{named('b', BAD)}---\nkind: Pod\n---\n{named('c')}")
    write("app/template.yaml", "metadata:\n  name: {{ .Release.Name }}\n")
    code, out, err = run("check", "--policies", PRODUCTION, "-o", "json", "app", "none.yaml")
    report = json.loads(out)
    assert (code, [(each["name"], each["verdict"]) for each in report["results"]]) == (
        3,
        [("a", "allowed"), ("b", "denied"), ("c", "allowed")],
    )
    tab = "not YAML: found character '\\t' that cannot start any token"
    template = "not YAML: a key must be text; a template must be rendered first"
    assert [(each["file"], each["line"], each["message"]) for each in report["problems"]] == [
        ("app/broken.yaml", 2, tab),
        ("app/half.yaml", 12, "apiVersion: missing; every Kubernetes object has one"),
        ("app/template.yaml", 2, template),
        ("none.yaml", 1, "No such file or directory"),
    ]
    assert err.splitlines() == [
        f"app/broken.yaml:2: {tab}",
        "app/half.yaml:12: apiVersion: missing; every Kubernetes object has one",
        f"app/template.yaml:2: {template}",
        "none.yaml: No such file or directory",
    ]


CPU_DEFAULT = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: NAME}
spec: {policy: resource-defaults, params: {limits: {RESOURCE: "AMOUNT"}}}
---
"""


def test_of_a_set_with_a_conflict_all_other_policies_are_in_force(check):
    """The later of the two is named, and everything is judged."""
    policies = [("one", "cpu", "1"), ("two", "memory", "1Gi"), ("three", "cpu", "2")]
    text = "".join(
        CPU_DEFAULT.replace("NAME", name).replace("RESOURCE", resource).replace("AMOUNT", amount)
        for name, resource, amount in policies
    )
    text = f"{Path(PRODUCTION).read_text()}---\n{text}"
    line = text.splitlines().index("metadata: {name: three}") - 1  # its object's first line
    write("set.yaml", text)
    code, verdicts, err = check(write("a.yaml", GOOD), write("b.yaml", BAD), policies="set.yaml")
    assert (code, len(verdicts), verdicts[1][:6]) == (3, 2, "denied")
    conflict = "one and three set Pod spec.containers[name=container].resources.limits.cpu"
    assert err.splitlines() == [
        f'set.yaml:{line}: it is not in force: {conflict} to different values: "1" and "2"'
    ]


def test_a_new_policy_that_conflicts_is_warned_of(run):
    """`check` of a policy object tells what `kubectl apply` of it would warn of."""
    one, three = (
        CPU_DEFAULT.replace("NAME", name).replace("RESOURCE", "cpu").replace("AMOUNT", amount)
        for name, amount in (("one", "1"), ("three", "2"))
    )
    code, out, _ = run("check", "--policies", write("one.yaml", one), write("three.yaml", three))
    assert code == 0
    assert "mutation-effects" in out
    assert "one and three set Pod" in out
    assert "this policy would not be in force" in out


def test_files_without_objects_are_skipped(check):
    """Each is named; the exit code is 3 only if nothing is left to judge."""
    write("app/good.yaml", GOOD)
    write("app/values.yaml", "replicas: 3\n")
    write("app/package.json", '{"name": "shop"}')
    write("app/mixed.yaml", f"{named('b')}---\nname: chart\n")
    notes = (
        "note: app/mixed.yaml:12: skipped: not a Kubernetes object\n"
        "note: app/package.json, app/values.yaml: skipped: no Kubernetes objects\n"
    )
    assert check("app") == (0, ["allowed shop", "allowed b"], notes)
    assert check("app/values.yaml") == (
        3,
        [],
        "note: app/values.yaml: skipped: no Kubernetes objects\napp/values.yaml: no Kubernetes objects\n",
    )


def test_a_directory_without_manifests_is_noted(check):
    """It may be the wrong one; extensions in capitals are extensions."""
    Path("empty").mkdir()
    write("app/good.YAML", GOOD)
    assert check("empty", "app") == (0, ["allowed shop"], "note: empty: no manifests\n")
    assert check("app/*") == (0, ["allowed shop"], "")


def test_named_pipes_are_not_read(check):
    """Reading one would wait for a writer."""
    write("app/good.yaml", GOOD)
    os.mkfifo("app/pipe.yaml")
    assert check("app") == (0, ["allowed shop"], "")


def test_a_loop_of_links_hides_no_verdict(check):
    """A link to itself is an unreadable file, also in a directory."""
    write("app/good.yaml", GOOD)
    Path("app/self.yaml").symlink_to("self.yaml")
    error = "app/self.yaml: Too many levels of symbolic links\n"
    assert check("app/self.yaml", "app") == (3, ["allowed shop"], error)


@pytest.mark.long
def test_what_permissions_hide_is_an_error():
    """An unreadable file or directory, named or in a directory, hides no verdict and is no pass."""
    write("app/good.yaml", GOOD)
    for hidden in (write("app/secret.yaml", GOOD), Path(write("app/closed/a.yaml", GOOD)).parent):
        Path(hidden).chmod(0)
    write("p.yaml", ON_DEPLOYMENTS)
    drop = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]  # root reads everything
    command = [sys.executable, "-m", "gatewright", "check", "--policies", "p.yaml", "--all"]
    ended = subprocess.run(
        [*drop * (os.geteuid() == 0), *command, "app/secret.yaml", "app"],
        capture_output=True,
        check=False,
        text=True,
    )
    Path("app/closed").chmod(0o755)
    assert (ended.returncode, ended.stdout.splitlines()[-1]) == (3, "1 object: 1 allowed")
    assert ended.stderr.splitlines() == [
        "app/closed: Permission denied",
        "app/secret.yaml: Permission denied",
    ]


def test_an_endless_file_hides_no_verdict(check):
    """Reading ends at 256 MiB, so that a device cannot use up the memory."""
    write("app/good.yaml", GOOD)
    error = "/dev/zero: larger than 256 MiB; split it\n"
    assert check("/dev/zero", "app") == (3, ["allowed shop"], error)


def test_ignore_files_exclude_paths(check):
    """The rules are those of .gitignore; the files are in the working directory and in the given one."""
    for name in (
        "app/a.yaml",
        "app/b.yaml",
        "app/old/c.yaml",
        "app/test/d.yaml",
        "app/test/keep.yaml",
    ):
        write(name, named(Path(name).stem))
    write(".gatewrightignore", "# not ours\nold/\n")
    write("app/.gatewrightignore", "/b.yaml\ntest/*\n!test/keep.yaml\n")
    assert check("app") == (0, ["allowed a", "allowed keep"], "")
    assert check("app/old/c.yaml", "app/a.yaml") == (
        0,
        ["allowed a"],
        "note: app/old/c.yaml: skipped: listed in .gatewrightignore\n",
    )
    assert check("app/old") == (
        3,
        [],
        "note: app/old: no manifests but those that .gatewrightignore lists\napp/old: no Kubernetes objects\n",
    )


def test_an_ignore_file_that_is_no_text_ignores_nothing(check):
    """It hides no verdict."""
    write("app/a.yaml", GOOD)
    Path("app/.gatewrightignore").write_bytes(b"\xff\xfe\n")
    assert check("app") == (0, ["allowed shop"], "")


def test_globs_are_expanded(check):
    """`**` matches any number of directories; a glob without a match is an error."""
    for name in ("app/a.yaml", "app/sub/b.yaml", "app/sub/c.txt"):
        write(name, named(Path(name).stem))
    assert check("app/**/*.yaml") == (0, ["allowed a", "allowed b"], "")
    assert check("app/*.yml") == (3, [], "app/*.yml: no file matches\n")


def test_a_glob_matches_hidden_files_only_by_name(check):
    """As in a shell; `**` enters no link to a directory, `*` does."""
    for name in ("app/a.yaml", "app/.b.yaml", "app/.c/d.yaml", "real/e.yaml"):
        write(name, named(Path(name).stem.strip(".")))
    Path("app/link").symlink_to(Path("real").absolute())
    assert check("app/**/*.yaml") == (0, ["allowed a"], "")
    assert check("app/*/*.yaml") == (0, ["allowed e"], "")
    assert check("app/.*.yaml", "app/.c/*.yaml") == (0, ["allowed b", "allowed d"], "")
    assert check(f"{Path.cwd()}/**/e.yaml") == (0, ["allowed e"], "")


def test_a_file_is_judged_once(check):
    """Repeated arguments do not repeat results."""
    write("app/a.yaml", GOOD)
    assert check("app", "app/a.yaml", "./app/*.yaml")[1] == ["allowed shop"]


def test_exceptions_without_effect_are_reported(run):
    """The exception is expired, in a namespace that does not count, or for a kind the policy does not judge."""
    exception = {"apiVersion": "gatewright.io/v1alpha1", "kind": "PolicyException"}
    spec = {
        "reason": "sale",
        "expires": "2999-01-01T00:00:00Z",
        "exceptions": [{"policy": "replica-limits"}],
    }
    texts = [
        {"metadata": {"name": "late"}, "spec": {**spec, "expires": "2020-01-01T00:00:00Z"}},
        {"metadata": {"name": "elsewhere", "namespace": "production"}, "spec": spec},
        {
            "metadata": {"name": "odd"},
            "spec": {**spec, "exceptions": [{"policy": "replica-limits", "kinds": ["Pod"]}]},
        },
        {
            "metadata": {"name": "good"},
            "spec": {**spec, "exceptions": [{"policy": "replica-limits", "names": ["x"]}]},
        },
    ]
    documents = "\n---\n".join(
        [ON_DEPLOYMENTS, *(json.dumps({**exception, **each}) for each in texts)]
    )
    write("p.yaml", documents)
    code, _, err = run("check", "--policies", "p.yaml", write("bad.yaml", BAD))
    place = "PolicyException %s: has no effect: "
    assert (code, err.splitlines()) == (
        1,
        [
            f"note: p.yaml:11: {place % 'late'}spec.expires: it expired at 2020-01-01T00:00:00Z",
            f"note: p.yaml:13: {place % 'elsewhere'}spec.exceptions[0].policy: "
            '"replica-limits" is a cluster policy; exceptions from it count in namespace gatewright-system only',
            f"note: p.yaml:15: {place % 'odd'}spec.exceptions[0].kinds: replica-limits judges no Pod",
        ],
    )


def git(*arguments):
    """Run git with a test identity."""
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", *who, *arguments], check=True, capture_output=True)


@pytest.mark.long
def test_only_changed_files_are_judged(check):
    """These are files committed since the revision, changed or new; the others still serve as look-ups."""
    git("init", "-q", "-b", "main")
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {environment: production}}\n"
    write("app/namespace.yaml", namespace)
    for name in ("same", "edited", "committed"):
        write(
            f"app/{name}.yaml", named(name, BAD.replace("namespace: production", "namespace: shop"))
        )
    git("add", ".")
    git("commit", "-qm", "first")
    git("branch", "base")
    for name in ("committed", "edited", "new"):
        write(
            f"app/{name}.yaml",
            named(name, BAD.replace("namespace: production", "namespace: shop")) + "# again\n",
        )
        if name == "committed":
            git("commit", "-qam", "second")
    assert check("--changed", "base", "app") == (
        1,
        ["denied committed", "denied edited", "denied new"],
        "",
    )
    git("add", ".")
    git("commit", "-qm", "third")
    assert check("--changed", "HEAD", "app") == (0, [], "")


@pytest.mark.long
def test_an_unknown_revision_is_a_usage_error(run):
    """The exit code is 2, with Git's message."""
    git("init", "-q")
    code, _, err = run("check", "--policies", PRODUCTION, "--changed", "nowhere", ".")
    assert (code, err.splitlines()[-1]) == (
        2,
        "Error: Invalid value for --changed: Not a valid object name nowhere",
    )


def test_without_kustomize_the_files_are_judged(check, monkeypatch):
    """Its resources are judged as files, but that is not what would be applied: exit code 3."""
    monkeypatch.setenv("PATH", "/nowhere")
    write("app/deployment.yaml", BAD)
    write("app/kustomization.yaml", "resources: [deployment.yaml]\n")
    problem = (
        "app: not built: neither kustomize nor kubectl is installed; its files are judged without "
        "patches\n"
    )
    assert check("app") == (3, ["denied shop"], problem)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ("resources: [deployment.yaml, nowhere.yaml]", "nowhere.yaml does not exist"),
        (
            "resources: [deployment.yaml, 'http://localhost/a.yaml']",
            "http://localhost/a.yaml is remote, and the network is not used; vendor it",
        ),
        ("resources: [deployment.yaml, /]", "/ is outside of .*"),
        ("resources: [deployment.yaml]\nhelmCharts: [{name: a}]", "helmCharts is not rendered; .*"),
        ("[deployment.yaml]", "not a kustomization"),
    ],
)
def test_a_broken_kustomization_hides_no_file(run, monkeypatch, tmp_path, fields, why):
    """The failure is a problem, and its files are judged."""
    write("app/deployment.yaml", BAD)
    write("app/kustomization.yaml", f"{fields}\n")
    monkeypatch.setenv("PATH", str(Path(write("bin/kustomize", "")).parent))
    Path("bin/kustomize").chmod(0o755)
    code, out, err = run("check", "--policies", PRODUCTION, "app")
    assert (code, out.splitlines()[0]) == (
        3,
        "denied  Deployment production/shop  (app/deployment.yaml:1)",
    )
    assert re.fullmatch(f"app/kustomization.yaml: not judged: {why}\n", err)


def test_an_ignored_kustomization_is_not_rendered(check):
    """The other files of its directory are judged."""
    write("app/deployment.yaml", BAD)
    write("app/kustomization.yaml", "resources: [nowhere.yaml]\n")
    write(".gatewrightignore", "kustomization.yaml\n")
    assert check("app") == (1, ["denied shop"], "")


def test_a_chart_is_never_a_silent_pass_without_helm(check, monkeypatch):
    """It is a problem (exit code 3): its templates are not YAML, so none of its objects was judged."""
    monkeypatch.setenv("PATH", "/nowhere")
    write("app/good.yaml", GOOD)
    write("app/chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n")
    write("app/chart/templates/a.yaml", "metadata: {{ x }}\n")
    problem = (
        "app/chart: not judged: a Helm chart, and helm is not installed. Install helm, or list the "
        "directory in .gatewrightignore\n"
    )
    assert check("app") == (3, ["allowed shop"], problem)


def test_a_chart_is_rendered_by_helm(check, run, tmp_path, monkeypatch):
    """A violation has the template's name; a chart that helm rejects is a problem."""
    text = f"---\n# Source: chart/templates/a.yaml\n{named('a', BAD)}---\n# Source: chart/templates/b.yaml\n{named('b')}"
    write("rendered", text)
    helm = tmp_path / "bin" / "helm"
    refuses = '[ "$5" = shop ] || { echo "Error: no values" >&2; exit 1; }'
    write(str(helm), f"#!/bin/sh\n{refuses}\nexec /bin/cat {tmp_path}/rendered\n")
    helm.chmod(0o755)
    monkeypatch.setenv("PATH", str(helm.parent))
    write("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n")
    code, out, _ = run("check", "--policies", PRODUCTION, "-n", "shop", "-o", "json", "chart")
    report = json.loads(out)
    assert (
        code,
        [(each["file"], each["line"], each["verdict"]) for each in report["results"]],
    ) == (
        1,
        [("chart/templates/a.yaml", 1, "denied"), ("chart/templates/b.yaml", 1, "allowed")],
    )
    assert check("chart") == (3, [], "chart: helm template failed: no values\n")


def test_several_outputs_at_once(run):
    """Files are written in addition to standard output."""
    code, out, err = run(
        "check", "--policies", PRODUCTION, "-o", "json=report.json", write("bad.yaml", BAD)
    )
    assert (code, out.splitlines()[-1], err) == (1, "1 object: 1 denied", "")
    assert json.loads(Path("report.json").read_text())["summary"] == {"denied": 1}


FIXABLE = """\
# the shop
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: production}
spec:
  replicas: 11  # many
  template:
    spec:
      hostNetwork: true
      containers:
        # the app
        - name: app
          image: nginx:1.21  # theirs
    metadata: {labels: {app: shop}}
  selector: {matchLabels: {app: shop}}
---
apiVersion: v1
kind: Pod
metadata: {name: tool, namespace: production}
spec: {hostNetwork: true, hostPID: false, containers: [{name: tool, image: registry.company.com/tool:1}]}
"""
FIXED = (
    FIXABLE.replace("11  # many", "10  # many")
    .replace("      hostNetwork: true\n", "")
    .replace("{hostNetwork: true, hostPID: false", "{hostPID: false")
)
RULES = (
    "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {name: %s}\n"
    "spec: {policy: %s, params: %s}\n"
)
STRICT = "---\n".join(
    RULES % each
    for each in (
        ("few", "replica-limits", "{}"),
        ("hosts", "host-namespaces", "{}"),
        ("images", "image-registries", "{registries: [registry.company.com]}"),
    )
)


HIDDEN = "note: 2 fixes left out: may stop an application; --unsafe-fixes adds them\n"


def test_fix_corrects_what_stops_no_application(run):
    """Files change in place, comments and order kept; remaining violations are reported and set the exit code."""
    write("p.yaml", STRICT)
    code, out, err = run("check", "--policies", "p.yaml", "--fix", write("app/shop.yaml", FIXABLE))
    assert Path("app/shop.yaml").read_text() == FIXABLE.replace("11  # many", "10  # many")
    assert (code, out.splitlines()[-1], err) == (
        1,
        "2 objects: 2 denied",
        f"note: app/shop.yaml: fixed 1 field\n{HIDDEN}",
    )


def test_unsafe_fixes_are_written_on_request(run):
    """They may stop an application; a second run changes nothing."""
    write("p.yaml", STRICT)
    fix = ("check", "--policies", "p.yaml", "--fix", "--unsafe-fixes")
    code, out, err = run(*fix, write("app/shop.yaml", FIXABLE))
    assert Path("app/shop.yaml").read_text() == FIXED
    assert (code, out.splitlines()[-1], err) == (
        1,
        "2 objects: 1 denied, 1 allowed",
        "note: app/shop.yaml: fixed 3 fields\n",
    )
    assert run(*fix, "app")[2] == ""
    assert Path("app/shop.yaml").read_text() == FIXED


def test_a_check_of_a_level_has_the_fix_of_its_policy(run):
    """Beside privilege escalation, which is unsafe, restricted asks for a profile, which is safe."""
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n    - {name: a, image: b:1}\n"
    _, out, _ = run("check", "--policies", "restricted", "-o", "json", write("pod.yaml", pod))
    found = json.loads(out)["results"][0]["violations"]
    assert {each["path"].rpartition(".")[2]: each["patch_is_safe"] for each in found} == {
        "allowPrivilegeEscalation": False,
        "drop": False,
        "runAsNonRoot": False,
        "type": True,
    }


def test_diff_changes_nothing(run):
    """The changes of --fix are printed instead of the verdicts; the exit code is that of the verdicts."""
    write("p.yaml", STRICT)
    code, out, err = run("check", "--policies", "p.yaml", "--diff", write("shop.yaml", FIXABLE))
    assert Path("shop.yaml").read_text() == FIXABLE
    assert (code, err) == (1, HIDDEN)
    assert (
        out
        == """\
--- shop.yaml
+++ shop.yaml
@@ -3,7 +3,7 @@
 kind: Deployment
 metadata: {name: shop, namespace: production}
 spec:
-  replicas: 11  # many
+  replicas: 10  # many
   template:
     spec:
       hostNetwork: true
"""
    )


def test_a_diff_is_no_command_of_a_ci(run):
    """GitHub runs lines that begin with `::`, indented or not, as commands; terminals interpret escapes."""
    write("p.yaml", STRICT)
    hostile = FIXABLE.replace("spec:\n", "x: |\n    ::error::pwn\u202e\nspec:\n", 1)
    _, out, _ = run("check", "--policies", "p.yaml", "--diff", write("shop.yaml", hostile))
    assert "     \\x3a:error::pwn\\u202e\n" in out


def test_fixes_of_standard_input_are_left_out(run, monkeypatch):
    """A line reports that there is no file to write."""
    write("p.yaml", STRICT)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(FIXABLE.encode())))
    code, out, err = run("check", "--policies", "p.yaml", "--diff", "-")
    left_out = "note: 1 fix left out: standard input is no file\n"
    assert (code, out, err) == (1, "", f"{left_out}{HIDDEN}")


def test_unsafe_fixes_need_fixes(run):
    """Without --fix or --diff, the option would have no effect."""
    code, _, err = run("check", "--policies", "baseline", "--unsafe-fixes", "shop.yaml")
    assert (code, err.splitlines()[-1]) == (
        2,
        "Error: --unsafe-fixes needs --fix, --fix-defaults or --diff",
    )


def test_json_has_the_fixes(run):
    """A violation with a fix has a JSON Patch; nothing is written without --fix."""
    write("p.yaml", STRICT)
    _, out, _ = run("check", "--policies", "p.yaml", "-o", "json", write("shop.yaml", FIXABLE))
    patches = [each["patch"] for each in json.loads(out)["results"][0]["violations"]]
    assert patches == [
        [{"op": "add", "path": "/spec/replicas", "value": 10}],
        [{"op": "remove", "path": "/spec/template/spec/hostNetwork"}],
        [],
    ]
    assert Path("shop.yaml").read_text() == FIXABLE


def test_fix_skips_text_that_cannot_be_changed_safely(run):
    """Merged YAML is left alone and reported; other documents are fixed."""
    write("p.yaml", STRICT)
    shared = "apiVersion: v1\nkind: Pod\nx: &x {hostNetwork: true}\nmetadata: {name: a}\nspec: {<<: *x, containers: []}\n"
    write("a.yaml", f"{shared}---\n{FIXABLE}")
    code, _, err = run("check", "--policies", "p.yaml", "--fix", "--unsafe-fixes", "a.yaml")
    assert (code, Path("a.yaml").read_text(), err) == (
        1,
        f"{shared}---\n{FIXED}",
        "note: a.yaml: fixed 3 fields\n"
        "note: a.yaml: 1 fix left out: anchors, aliases or merges share the values; write them out\n",
    )


def test_fix_defaults_writes_defaults(run):
    """Fields that mutating policies set are added to the manifest."""
    code, _, err = run(
        "check", "--policies", PRODUCTION, "--fix-defaults", write("shop.yaml", WEBAPP)
    )
    assert (code, err) == (0, "note: shop.yaml: fixed 2 fields\n")
    assert Path("shop.yaml").read_text() == WEBAPP.replace(
        "namespace: production}",
        "namespace: production, labels: {managed-by: webapp-operator, version: v1}}",
    ).replace(
        "shop:1}",
        "shop:1, securityContext: {runAsNonRoot: true, runAsUser: 1000, allowPrivilegeEscalation: false}}",
    )
    assert run("check", "--policies", PRODUCTION, "--fix-defaults", "shop.yaml")[2] == ""


def test_what_is_skipped_for_one_reason_is_one_line(run):
    """Notes about a directory of other files do not hide the verdicts."""
    for number in range(60):
        write(f"app/{number:02}.yaml", "a: 1\n")
    write("app/good.yaml", GOOD)
    code, _, err = run("check", "--policies", PRODUCTION, "app")
    names = "app/00.yaml, app/01.yaml, app/02.yaml and 57 more"
    assert (code, err) == (0, f"note: {names}: skipped: no Kubernetes objects\n")


PRIVILEGED = """\
apiVersion: v1
kind: Pod
metadata: {name: tool, namespace: shop}
spec:
  hostPID: true
  containers:
    - name: tool
      image: tool:1
      securityContext:
        privileged: true
"""


def scanned(run, text):
    """Return the results of SARIF for a file, and the rules."""
    write("pod.yaml", text)
    _, out, _ = run("check", "--policies", "baseline", "-o", "sarif", "pod.yaml")
    (found,) = json.loads(out)["runs"]
    return found["results"], found["tool"]["driver"]["rules"]


def test_code_scanning_gets_a_rule_for_each_check(run):
    """Each rule has the check's description; a region ends with its line."""
    results, rules = scanned(run, PRIVILEGED)
    assert [each["ruleId"] for each in results] == [
        "baseline/host-namespaces",
        "baseline/privileged-containers",
    ]
    assert rules[0]["id"] == "baseline/host-namespaces"
    assert rules[0]["shortDescription"] == {
        "text": "Pods do not use the node's network, PID or IPC namespace."
    }
    assert "capture the node's traffic" in rules[0]["fullDescription"]["text"]
    assert results[0]["locations"][0]["physicalLocation"]["region"] == {
        "startLine": 5,
        "startColumn": 3,
        "endLine": 5,
        "endColumn": 16,
    }


def test_moved_lines_open_no_new_alert(run):
    """GitHub identifies an alert by its rule and the hash of its line, which do not change."""

    def alerts(results):
        return [
            (result["ruleId"], result["partialFingerprints"]["primaryLocationLineHash"])
            for result in results
        ]

    def lines(results):
        return [each["locations"][0]["physicalLocation"]["region"]["startLine"] for each in results]

    before, _ = scanned(run, PRIVILEGED)
    after, _ = scanned(run, f"# one\n# two\n{PRIVILEGED}")
    assert alerts(before) == alerts(after)
    assert (lines(before), lines(after)) == ([5, 10], [7, 12])


SEVERAL = BAD.replace("registry.company.com", "docker.io")


def violations(run, *options):
    """Return the policies that deny a bad manifest, and the exit code."""
    write("bad.yaml", SEVERAL)
    code, out, _ = run("check", "--policies", PRODUCTION, "-o", "json", *options, "bad.yaml")
    (result,) = json.loads(out)["results"]
    return code, {each["policy"] for each in result["violations"]}


def test_policies_are_selected_or_left_out(run):
    """By name, several times."""
    assert violations(run) == (1, {"image-registries", "replica-limits"})
    assert violations(run, "--select", "replica-limits") == (1, {"replica-limits"})
    assert violations(run, "--ignore", "replica-limits") == (1, {"image-registries"})
    both = "--ignore", "replica-limits", "--ignore", "image-registries"
    assert violations(run, *both) == (0, set())


def test_a_hook_may_be_given_nothing(run):
    """An empty directory is an error, unless it is said that there may be nothing to judge."""
    Path("empty").mkdir()
    nothing = "check", "--policies", PRODUCTION, "empty"
    assert run(*nothing)[0] == 3
    assert run(*nothing, "--allow-empty")[0] == 0


def test_a_hook_names_files_that_changed(run):
    """Named manifests are judged; a file that is no manifest, and that no chart reads, is not."""
    write("app/good.yaml", GOOD)
    write("README.md", "# Shop\n")
    hook = "check", "--policies", PRODUCTION, "-o", "json", "--changed-files"
    code, out, _ = run(*hook, "README.md")
    assert (code, json.loads(out)["results"]) == (0, [])
    code, out, _ = run(*hook, "app/good.yaml", "README.md")
    assert (code, [each["name"] for each in json.loads(out)["results"]]) == (0, ["shop"])


def test_rules_about_custom_kinds_are_checked_by_their_definitions(run):
    """The definition among the checked files is enough."""
    rule = "match: {any: [{kinds: [example.org/v1/Gadget]}]}, validations: [{expression: object.spec.sice < 2}]"
    Path("p.yaml").write_text(POLICY.partition("spec:")[0] + f"spec: {{{rule}}}\n")
    schema = (
        "{type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}"
    )
    Path("crd.yaml").write_text(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gadgets.example.org}\n"
        "spec:\n  group: example.org\n  names: {kind: Gadget, plural: gadgets}\n"
        f"  versions: [{{name: v1, schema: {{openAPIV3Schema: {schema}}}}}]\n"
    )
    code, _, error = run("check", "--policies", "p.yaml", "crd.yaml")
    assert code == 3
    assert "undefined field 'sice' of 'spec'; did you mean \"size\"?" in error
