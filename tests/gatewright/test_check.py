"""`gatewright check`: what it reads, what it leaves out, and its exit codes."""

import io
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gatewright.cli import main

ROOT = Path(__file__).parents[2]
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


@pytest.fixture
def check(run):
    """Check manifests by the production set; return exit code, `VERDICT NAME` of each object, and stderr."""

    def _check(*arguments, policies=PRODUCTION):
        code, out, err = run("check", "--policies", policies, "-o", "json", *arguments)
        return code, [f"{each['verdict']} {each['name']}" for each in json.loads(out)["results"]], err

    return _check


def write(name, text):
    """Write a file into the directory of the test."""
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text)
    return name


def named(name, text=GOOD):
    """A manifest of another name."""
    return text.replace("name: shop", f"name: {name}")


def test_check_denies(run):
    """Exit code 1; each finding has the line of its field."""
    assert run("check", "--policies", PRODUCTION, write("bad.yaml", BAD)) == (
        1,
        "denied  Deployment production/shop  (bad.yaml:1)\n"
        f"  bad.yaml:5: replica-limits: {VIOLATION}\n"
        "1 object: 1 denied\n",
        "",
    )


def test_check_lets_in(run, monkeypatch):
    """What nobody judged is not called allowed, and what is set is shown; policies may be in a variable."""
    monkeypatch.setenv("GATEWRIGHT_POLICIES", PRODUCTION)
    write("all.yaml", f"{GOOD}---\n{CONFIG_MAP}---\n{WEBAPP}")
    code, out, err = run("check", "all.yaml")
    patches = sorted(line for line in out.splitlines() if line.startswith("  "))
    assert (code, err) == (0, "")
    assert [line for line in out.splitlines() if line not in patches] == [
        "allowed    Deployment production/shop  (all.yaml:1)",
        "unmatched  ConfigMap default/settings  (all.yaml:10)",
        "mutated    WebApp production/shop  (all.yaml:14)",
        "3 objects: 1 allowed, 1 unmatched, 1 mutated",
    ]
    assert patches == [
        '  add /metadata/labels {"managed-by":"webapp-operator","version":"v1"}',
        '  add /spec/securityContext {"runAsNonRoot":true,"runAsUser":1000,"allowPrivilegeEscalation":false}',
    ]


def test_json_has_lines_columns_and_fields(run):
    """Nothing but JSON is on standard output."""
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
                    }
                ],
                "patch": [],
            }
        ],
        "problems": [],
        "notes": [],
    }


def test_check_reads_standard_input(run, monkeypatch):
    """As in `helm template … | gatewright check -`."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    code, out, _ = run("check", "--policies", PRODUCTION, "-")
    assert (code, out.splitlines()[0]) == (1, "denied  Deployment production/shop  (<stdin>:1)")


def test_check_takes_a_namespace(run):
    """What names no namespace goes where -n says."""
    write("bad.yaml", BAD.replace(", namespace: production", ""))
    assert run("check", "--policies", PRODUCTION, "-n", "production", "bad.yaml")[0] == 1


def test_check_of_what_cannot_be_decided(run):
    """Exit code 3: it is neither allowed nor denied."""
    write("shop.yaml", BAD.replace("namespace: production", "namespace: shop"))
    code, out, err = run("check", "--policies", PRODUCTION, "shop.yaml")
    assert (code, err) == (3, "")
    assert out.splitlines()[0] == "error  Deployment shop/shop  (shop.yaml:1)"


def test_what_would_be_made_is_checked_with_its_parent(run):
    """A policy about Deployments alone denies a WebApp, on the line of the WebApp's own field."""
    write("p.yaml", ON_DEPLOYMENTS)
    write("shop.yaml", WEBAPP.replace("replicas: 3", "replicas: 4"))
    code, out, _ = run("check", "--policies", "p.yaml", "-o", "json", "shop.yaml")
    (record,) = json.loads(out)["results"]
    (violation,) = record["violations"]
    assert (code, record["verdict"], violation["path"], violation["line"]) == (1, "denied", "spec.replicas", 4)


def test_what_a_type_refuses_has_a_severity_too(run):
    """A violation of a kind's own schema is reported like those of policies."""
    write("shop.yaml", WEBAPP.replace("replicas: 3", "replicas: 11"))
    code, out, _ = run("check", "--policies", PRODUCTION, "-o", "json", "shop.yaml")
    violation = json.loads(out)["results"][0]["violations"][-1]
    assert (code, violation["policy"], violation["severity"], violation["category"], violation["line"]) == (
        1,
        "webapp-schema",
        "high",
        "kinds",
        4,
    )
    assert violation["message"] == "spec.replicas: 11; should be less than or equal to 10. Correct it."


def test_no_policies_is_no_verdict(run):
    """A forgotten --policies never looks like success."""
    write("good.yaml", GOOD)
    assert run("check", "good.yaml") == (
        3,
        "",
        "no policies given: name policy sets with --policies, or a cluster that has some with --kubeconfig\n",
    )


def test_namespaces_have_the_labels_that_are_given(check):
    """By --namespace-labels, where the manifest of the namespace is elsewhere; a manifest among the others wins."""
    write("shop.yaml", BAD.replace("namespace: production", "namespace: shop"))
    assert check("shop.yaml")[0:2] == (3, ["error shop"])
    assert check("--namespace-labels", "shop=environment=production,team=a", "shop.yaml")[0:2] == (1, ["denied shop"])
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
def test_what_fails_can_be_chosen(run, action, fail_on, code):
    """Violations that deny fail by default; those that warn where that is asked for; audited ones never."""
    write("policies.yaml", POLICY % action)
    assert run("check", "--policies", "policies.yaml", "--fail-on", fail_on, write("bad.yaml", BAD))[0] == code


def test_audited_violations_are_shown(run):
    """They say so, since they would deny nothing."""
    write("policies.yaml", POLICY % "Audit")
    assert run("check", "--policies", "policies.yaml", write("bad.yaml", BAD)) == (
        0,
        "audited  Deployment production/shop  (bad.yaml:1)\n"
        f"  bad.yaml:5: few (audit): {VIOLATION}\n"
        "1 object: 1 audited\n",
        "",
    )


def test_a_broken_file_hides_no_verdict(run):
    """All others are judged and reported; exit code 3, and standard output stays valid JSON."""
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
    template = "not YAML: found unhashable key; a template must be rendered first"
    assert [(each["file"], each["line"], each["message"]) for each in report["problems"]] == [
        ("app/broken.yaml", 2, tab),
        ("app/template.yaml", 2, template),
        ("none.yaml", 1, "No such file or directory"),
        ("app/half.yaml", 10, "apiVersion: missing; every Kubernetes object has one"),
    ]
    assert err.splitlines() == [
        f"app/broken.yaml:2: {tab}",
        f"app/template.yaml:2: {template}",
        "none.yaml: No such file or directory",
        "app/half.yaml:10: apiVersion: missing; every Kubernetes object has one",
    ]


def test_files_that_hold_no_objects_are_skipped(check):
    """With a note each; exit code 3 only where nothing at all is left to judge."""
    write("app/good.yaml", GOOD)
    write("app/values.yaml", "replicas: 3\n")
    write("app/package.json", '{"name": "shop"}')
    write("app/mixed.yaml", f"{named('b')}---\nname: chart\n")
    notes = (
        "note: app/mixed.yaml:10: skipped: not a Kubernetes object\n"
        "note: app/package.json: skipped: no Kubernetes objects\n"
        "note: app/values.yaml: skipped: no Kubernetes objects\n"
    )
    assert check("app") == (0, ["allowed shop", "allowed b"], notes)
    assert check("app/values.yaml") == (
        3,
        [],
        "note: app/values.yaml: skipped: no Kubernetes objects\napp/values.yaml: no Kubernetes objects\n",
    )


def test_ignore_files_name_what_is_left_out(check):
    """With the rules of .gitignore, in the working directory and in the directory that is given."""
    for name in ("app/a.yaml", "app/b.yaml", "app/old/c.yaml", "app/test/d.yaml", "app/test/keep.yaml"):
        write(name, named(Path(name).stem))
    write(".gatewrightignore", "# not ours\nold/\n")
    write("app/.gatewrightignore", "/b.yaml\ntest/*\n!test/keep.yaml\n")
    assert check("app") == (0, ["allowed a", "allowed keep"], "")
    assert check("app/old/c.yaml", "app/a.yaml") == (
        0,
        ["allowed a"],
        "note: app/old/c.yaml: skipped: listed in .gatewrightignore\n",
    )


def test_globs_are_expanded_where_the_shell_did_not(check):
    """`**` is any number of directories; what matches nothing is an error."""
    for name in ("app/a.yaml", "app/sub/b.yaml", "app/sub/c.txt"):
        write(name, named(Path(name).stem))
    assert check("app/**/*.yaml") == (0, ["allowed a", "allowed b"], "")
    assert check("app/*.yml") == (3, [], "app/*.yml: no file matches\n")


def test_a_file_is_judged_once(check):
    """However often it is named."""
    write("app/a.yaml", GOOD)
    assert check("app", "app/a.yaml", "./app/*.yaml")[1] == ["allowed shop"]


def test_exceptions_without_effect_are_reported(run):
    """Expired, in a namespace that does not count, or about a kind that the policy does not judge."""
    exception = {"apiVersion": "gatewright.io/v1alpha1", "kind": "PolicyException"}
    spec = {"reason": "sale", "expires": "2999-01-01T00:00:00Z", "exceptions": [{"policy": "replica-limits"}]}
    texts = [
        {"metadata": {"name": "late"}, "spec": {**spec, "expires": "2020-01-01T00:00:00Z"}},
        {"metadata": {"name": "elsewhere", "namespace": "production"}, "spec": spec},
        {"metadata": {"name": "odd"}, "spec": {**spec, "exceptions": [{"policy": "replica-limits", "kinds": ["Pod"]}]}},
        {"metadata": {"name": "good"}, "spec": {**spec, "exceptions": [{"policy": "replica-limits", "names": ["x"]}]}},
    ]
    documents = "\n---\n".join([ON_DEPLOYMENTS, *(json.dumps({**exception, **each}) for each in texts)])
    write("p.yaml", documents)
    code, _, err = run("check", "--policies", "p.yaml", write("bad.yaml", BAD))
    place = "PolicyException %s: has no effect: "
    assert (code, err.splitlines()) == (
        1,
        [
            f"note: p.yaml:11: {place % 'late'}it expired at 2020-01-01T00:00:00Z",
            f"note: p.yaml:13: {place % 'elsewhere'}spec.exceptions[0].policy: "
            '"replica-limits" is a cluster policy; exceptions from it count in namespace gatewright-system only',
            f"note: p.yaml:15: {place % 'odd'}spec.exceptions[0].kinds: replica-limits judges no Pod",
        ],
    )


def git(*arguments):
    """Run git as somebody."""
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", *who, *arguments], check=True, capture_output=True)


@pytest.mark.long
def test_only_changed_files_are_judged(check):
    """Committed since the revision, changed or new; the others are known all the same."""
    git("init", "-q", "-b", "main")
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {environment: production}}\n"
    write("app/namespace.yaml", namespace)
    for name in ("same", "edited", "committed"):
        write(f"app/{name}.yaml", named(name, BAD.replace("namespace: production", "namespace: shop")))
    git("add", ".")
    git("commit", "-qm", "first")
    git("branch", "base")
    for name in ("committed", "edited", "new"):
        write(f"app/{name}.yaml", named(name, BAD.replace("namespace: production", "namespace: shop")) + "# again\n")
        if name == "committed":
            git("commit", "-qam", "second")
    assert check("--changed", "base", "app") == (1, ["denied committed", "denied edited", "denied new"], "")
    git("add", ".")
    git("commit", "-qm", "third")
    assert check("--changed", "HEAD", "app") == (0, [], "")


@pytest.mark.long
def test_a_revision_that_is_none_is_a_wrong_command_line(run):
    """Exit code 2, in Git's words."""
    git("init", "-q")
    code, _, err = run("check", "--policies", PRODUCTION, "--changed", "nowhere", ".")
    assert (code, err.splitlines()[-1]) == (
        2,
        "Error: Invalid value for --changed: Not a valid object name nowhere",
    )


@pytest.mark.long
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_a_kustomization_is_rendered(run):
    """By kustomize or kubectl: what is judged is what would be applied; rendered lines have no file."""
    write("app/base/deployment.yaml", BAD)
    write("app/base/kustomization.yaml", "resources: [deployment.yaml]\nreplicas: [{name: shop, count: 12}]\n")
    code, out, err = run("check", "--policies", PRODUCTION, "app")
    assert (code, err) == (1, "")
    assert out.splitlines()[:2] == [
        "denied  Deployment production/shop  (app/base/kustomization.yaml:1)",
        f"  app/base/kustomization.yaml:1: replica-limits: {VIOLATION.replace('11', '12')}",
    ]


def test_a_kustomization_is_read_as_files_without_the_program(check, monkeypatch):
    """Its resources are judged as they are; the kustomization itself is skipped."""
    monkeypatch.setenv("PATH", "/nowhere")
    write("app/deployment.yaml", BAD)
    write("app/kustomization.yaml", "resources: [deployment.yaml]\n")
    note = "note: app/kustomization.yaml: skipped: no Kubernetes objects\n"
    assert check("app") == (1, ["denied shop"], note)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_a_kustomization_that_cannot_be_rendered_hides_no_file(run):
    """It is a problem, and its files are judged as they are."""
    write("app/deployment.yaml", BAD)
    write("app/kustomization.yaml", "resources: [nowhere.yaml]\n")
    code, out, err = run("check", "--policies", PRODUCTION, "app")
    assert (code, out.splitlines()[0]) == (3, "denied  Deployment production/shop  (app/deployment.yaml:1)")
    assert "app: kubectl kustomize failed: " in err


def test_an_ignored_kustomization_is_not_rendered(check):
    """The other files of its directory are judged."""
    write("app/deployment.yaml", BAD)
    write("app/kustomization.yaml", "resources: [nowhere.yaml]\n")
    write(".gatewrightignore", "kustomization.yaml\n")
    assert check("app") == (1, ["denied shop"], "")


def test_a_chart_is_skipped_without_helm(check, monkeypatch):
    """With a note: its templates are not YAML."""
    monkeypatch.setenv("PATH", "/nowhere")
    write("app/good.yaml", GOOD)
    write("app/chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n")
    write("app/chart/templates/a.yaml", "metadata: {{ x }}\n")
    note = "note: app/chart: skipped: a Helm chart, and helm is not installed\n"
    assert check("app") == (0, ["allowed shop"], note)


def test_a_chart_is_rendered_by_helm(check, run, tmp_path, monkeypatch):
    """A violation is in the template that it came from; a chart that helm refuses is a problem."""
    text = (
        f"---\n# Source: chart/templates/a.yaml\n{named('a', BAD)}---\n# Source: chart/templates/b.yaml\n{named('b')}"
    )
    write("rendered", text)
    helm = tmp_path / "bin" / "helm"
    refuses = '[ "$5" = shop ] || { echo "Error: no values" >&2; exit 1; }'
    write(str(helm), f"#!/bin/sh\n{refuses}\nexec /bin/cat {tmp_path}/rendered\n")
    helm.chmod(0o755)
    monkeypatch.setenv("PATH", str(helm.parent))
    write("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n")
    code, out, _ = run("check", "--policies", PRODUCTION, "-n", "shop", "-o", "json", "chart")
    report = json.loads(out)
    assert (code, [(each["file"], each["line"], each["verdict"]) for each in report["results"]]) == (
        1,
        [("chart/templates/a.yaml", 1, "denied"), ("chart/templates/b.yaml", 1, "allowed")],
    )
    assert check("chart") == (3, [], "chart: helm template failed: Error: no values\n")


def test_several_outputs_at_once(run):
    """Files beside what is printed."""
    code, out, err = run("check", "--policies", PRODUCTION, "-o", "json=report.json", write("bad.yaml", BAD))
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
---
apiVersion: v1
kind: Pod
metadata: {name: tool, namespace: production}
spec: {hostNetwork: true, hostPID: false, containers: []}
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


def test_what_a_value_mends_is_fixed(run):
    """In place, comments and order kept; what remains is reported, and is the exit code."""
    write("p.yaml", STRICT)
    code, out, err = run("check", "--policies", "p.yaml", "--fix", write("app/shop.yaml", FIXABLE))
    assert Path("app/shop.yaml").read_text() == FIXED
    assert (code, out.splitlines()[-1], err) == (
        1,
        "2 objects: 1 denied, 1 allowed",
        "note: app/shop.yaml: fixed 3 fields\n",
    )
    assert run("check", "--policies", "p.yaml", "--fix", "app")[2] == ""
    assert Path("app/shop.yaml").read_text() == FIXED


def test_what_would_be_fixed_is_in_the_json(run):
    """As the JSON Patch of each violation that a value mends; nothing is written without --fix."""
    write("p.yaml", STRICT)
    _, out, _ = run("check", "--policies", "p.yaml", "-o", "json", write("shop.yaml", FIXABLE))
    patches = [each["patch"] for each in json.loads(out)["results"][0]["violations"]]
    assert patches == [
        [{"op": "add", "path": "/spec/replicas", "value": 10}],
        [{"op": "remove", "path": "/spec/template/spec/hostNetwork"}],
        [],
    ]
    assert Path("shop.yaml").read_text() == FIXABLE


def test_text_that_cannot_be_changed_safely_stays(run):
    """What is merged from elsewhere is left alone, and reported; other documents are fixed."""
    write("p.yaml", STRICT)
    shared = (
        "apiVersion: v1\nkind: Pod\nx: &x {hostNetwork: true}\nmetadata: {name: a}\nspec: {<<: *x, containers: []}\n"
    )
    write("a.yaml", f"{shared}---\n{FIXABLE}")
    code, _, err = run("check", "--policies", "p.yaml", "--fix", "a.yaml")
    assert (code, Path("a.yaml").read_text(), err) == (1, f"{shared}---\n{FIXED}", "note: a.yaml: fixed 3 fields\n")


def test_defaults_are_written_where_that_is_asked_for(run):
    """What mutating policies set, as fields of the manifest."""
    code, _, err = run("check", "--policies", PRODUCTION, "--fix-defaults", write("shop.yaml", WEBAPP))
    assert (code, err) == (0, "note: shop.yaml: fixed 2 fields\n")
    assert Path("shop.yaml").read_text() == WEBAPP.replace(
        "namespace: production}", "namespace: production, labels: {managed-by: webapp-operator, version: v1}}"
    ).replace(
        "shop:1}",
        "shop:1, securityContext: {runAsNonRoot: true, runAsUser: 1000, allowPrivilegeEscalation: false}}",
    )
    assert run("check", "--policies", PRODUCTION, "--fix-defaults", "shop.yaml")[2] == ""


def test_many_notes_are_cut(run):
    """A directory of other files does not bury the verdicts."""
    for number in range(60):
        write(f"app/{number:02}.yaml", "a: 1\n")
    write("app/good.yaml", GOOD)
    code, _, err = run("check", "--policies", PRODUCTION, "app")
    lines = err.splitlines()
    assert (code, len(lines), lines[-1]) == (0, 51, "note: and 10 more notes")
