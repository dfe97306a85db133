"""Charts and kustomizations are rendered without a network; violations point to the source files."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from config.documents import Document
from gatewright.checks import rendering
from gatewright.checks.template_places import ChartValues, TemplateFile
from gatewright.cli import main
from gatewright.console.options import ChartOptions
from tests.gatewright.started import COMMAND

POLICIES = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: tags}
spec: {policy: image-tags}
---
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: few}
spec: {policy: replica-limits, params: {maximum: 3}}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
spec:
  replicas: 2
  template:
    spec:
      containers:
        - name: app
          image: shop
    metadata: {labels: {app: shop}}
  selector: {matchLabels: {app: shop}}
"""
TEMPLATE = """\
{{- if .Values.account }}
apiVersion: v1
kind: ServiceAccount
metadata: {name: shop}
---
{{- end }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}-shop
spec:
  {{- with .Values.replicas }}
  replicas: {{ . }}
  {{- end }}
  template:
    spec:
      initContainers:
      - name: {{ .Values.first }}
        image: {{ .Values.image }}
      containers:
        - name: "app"  # the shop
          image: "{{ .Values.image }}"
          securityContext:
            {{- toYaml .Values.context | nindent 12 }}
        - image: proxy:1
          name: proxy
    metadata: {labels: {app: shop}}
  selector: {matchLabels: {app: shop}}
"""
TAG = (
    '"shop" has no tag, which means latest; images must have a tag other than latest. '
    "Name a version, or a digest."
)
NEEDS_KUBECTL = pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("policies.yaml", POLICIES)


@pytest.fixture
def check(capsys):
    """Run `gatewright check`; return the exit code, and the lines of both outputs."""

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["check", "--policies", "policies.yaml", *arguments])
        out, err = capsys.readouterr()
        return ended.value.code, out.splitlines(), err.splitlines()

    return run


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Write a Python program, and make it the only one on the PATH."""

    def install(name, text):
        write(f"bin/{name}", f"#!{sys.executable}\nimport os, sys, time\n{text}\n").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    return install


def write(name, text):
    """Write a file below the working directory."""
    file = Path(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("", 8),
        ("metadata.name", 10),
        ("metadata.namespace", 9),
        ("spec.replicas", 13),
        ("spec.template.spec.containers", 20),
        ("spec.template.spec.containers[name=app].image", 22),
        ("spec.template.spec.containers[name=app].securityContext.runAsNonRoot", 23),
        ("spec.template.spec.containers[name=proxy].image", 25),
        ("spec.template.spec.containers[name=other].image", 20),
        ("spec.template.spec.containers[1].image", 25),
        ("spec.template.spec.containers[2].image", 20),
        ("spec.template.spec.initContainers[name=any].image", 19),
        ("spec.template.spec.containers[name=app].image.of.it[0]", 22),
    ],
)
def test_a_field_of_a_rendered_object_has_a_line_in_its_template(path, line):
    """It is the line of the key, or of the nearest key above.

    An item whose name is an action matches if it is the only one.
    """
    assert TemplateFile(TEMPLATE).places("Deployment", 0).find(path)[1][0] == line


def test_objects_of_a_loop_have_the_lines_of_its_body():
    """There are more objects than in the template.

    An object that another file writes has the template's first line.
    """
    text = "kind: A\n---\nkind: B\n---\nkind: B\n"
    lines = [TemplateFile(text).places("B", number).find("")[1][0] for number in range(4)]
    assert (lines, TemplateFile(text).places("C", 0).find("spec")) == ([3, 5, 5, 5], ("", (1, 1)))


def test_a_chart_is_rendered_with_options(check, helm, monkeypatch):
    """Violations point to the template or the values; the options are those of helm."""
    monkeypatch.setenv("PATH", str(helm.parent))
    write(
        "shop/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\nkubeVersion: '>=1.31.0'\n"
    )
    write("shop/values.yaml", "image: shop:1\nfirst: a\naccount: true\n")
    write("shop/templates/deployment.yaml", TEMPLATE)
    write("more.yaml", "replicas: 4\n")
    assert check("shop") == (0, ["2 objects: 1 unmatched, 1 allowed"], [])
    code, out, err = check(
        *("shop", "-n", "production", "--release-name", "blue", "--kube-version", "1.32"),
        *("--values", "more.yaml", "--set", "image=shop", "--set", "context.procMount=Default"),
    )
    assert (code, err) == (1, [])
    assert out == [
        "denied  Deployment production/blue-shop  (shop/templates/deployment.yaml:8)",
        f"  shop/templates/deployment.yaml:22: tags: spec.template.spec.containers[name=app].image: {TAG}",
        f"  shop/templates/deployment.yaml:19: tags: spec.template.spec.initContainers[name=a].image: {TAG}",
        "  more.yaml:1: few: spec.replicas: 4; production workloads cannot exceed 3 replicas. Set it to 3 or less.",
        "2 objects: 1 unmatched, 1 denied",
    ]
    assert check("shop", "--kube-version", "1.30")[2] == [
        "shop: helm template failed: chart requires kubeVersion: >=1.31.0 which is incompatible "
        "with Kubernetes v1.30"
    ]


VALUED = """\
kind: Deployment
spec:
  replicas: {{ .Values.replicas | int }}
  {{- with $.Values.limits }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  context: {{- toYaml .Values.app.context | nindent 4 }}
  image: {{ .Values.image }}:{{ .Values.tag }}
  name: {{ .Values.name | default "a" }}
  tag: {{ .Values.app.tag | quote }}
  other: {{ .Values.other }}
"""
VALUES = (
    "replicas: 11\nlimits: {}\napp:\n  context:\n    runAsUser: 0\n  tag: a\nname: b\nimage: c\n"
)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("spec.replicas", "values.yaml:1"),
        ("spec.resources.limits.cpu", "values.yaml:2"),
        ("spec.context.runAsUser", "values.yaml:5"),
        ("spec.context.runAsGroup", "values.yaml:4"),
        ("spec.tag", "more.yaml:1"),
        ("spec.image", "t.yaml:9"),
        ("spec.name", "t.yaml:10"),
        ("spec.other", "t.yaml:12"),
    ],
)
def test_a_value_that_a_template_writes_as_it_is_has_its_line_in_the_values(path, place):
    """It is the line in the last file with the value, but not for combined values, defaults or missing values."""
    write("values.yaml", VALUES)
    write("more.yaml", "app: {tag: b}\n")
    values = ChartValues(Path(), ChartOptions(values=("more.yaml",)))
    document = Document("t.yaml", {}, TemplateFile(VALUED, values).places("Deployment", 0))
    assert document.where(path) == place


@pytest.mark.parametrize("key", ["replicas=3", "a=1,replicas=3", "replicas.a=3"])
def test_a_value_of_the_command_line_is_not_that_of_the_file(key):
    """The template's line is left."""
    write("values.yaml", VALUES)
    values = ChartValues(Path(), ChartOptions(set=(key,)))
    document = Document("t.yaml", {}, TemplateFile(VALUED, values).places("Deployment", 0))
    assert document.where("spec.replicas") == "t.yaml:3"


@pytest.mark.long
@NEEDS_KUBECTL
def test_violations_of_overlays_are_reported_once_in_the_plain_file(check):
    """The changes of overlays do not matter; generated objects have the kustomization's first line."""
    write("base/shop.yaml", DEPLOYMENT)
    write("base/kustomization.yaml", "resources: [shop.yaml]\n")
    for name in ("blue", "green"):
        write(
            f"overlays/{name}/kustomization.yaml", f"resources: [../../base]\nnamePrefix: {name}-\n"
        )
    write(
        "overlays/many/kustomization.yaml",
        "resources: [../../base]\nreplicas: [{name: shop, count: 9}]\n"
        "configMapGenerator: [{name: settings, literals: [a=b]}]\n",
    )
    violation = f"  base/shop.yaml:11: tags: spec.template.spec.containers[name=app].image: {TAG}"
    assert check("base", "overlays", "--all") == (
        1,
        [
            "denied     Deployment default/shop  (base/shop.yaml:1)",
            violation,
            "unmatched  ConfigMap default/settings-4h2mbtbbt6  (overlays/many/kustomization.yaml:1)",
            "denied     Deployment default/shop  (base/shop.yaml:1)",
            violation,
            "  base/shop.yaml:6: few: spec.replicas: 9; production workloads cannot exceed 3 replicas. Set it to 3 or less.",
            "3 objects: 2 denied, 1 unmatched",
        ],
        ["note: base/shop.yaml:1: 2 more of the objects rendered from it have the same violations"],
    )


@pytest.mark.long
@NEEDS_KUBECTL
def test_an_object_that_every_kustomization_removes_is_named(check):
    """A patch can delete an object: it is not judged, so it is named, unless another one has it."""
    write("base/shop.yaml", DEPLOYMENT)
    write("base/kustomization.yaml", "resources: [shop.yaml]\n")
    removed = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop}, $patch: delete}"
    write(
        "overlay/kustomization.yaml",
        f"resources: [../base]\npatches: [{{patch: '{removed}'}}]\n"
        "configMapGenerator: [{name: a, literals: [a=b]}]\n",
    )
    note = "note: base/shop.yaml: skipped in part: kustomizations leave out an object of the file"
    assert check("overlay") == (0, ["1 object: 1 unmatched"], [note])
    assert check("overlay", "base")[2] == []


@pytest.mark.long
@NEEDS_KUBECTL
def test_fixes_of_a_kustomization_are_written_to_the_plain_file(check):
    """Once for all overlays, to the container of that name; a value that a patch sets stays."""
    privileged = "          securityContext: {privileged: true}\n"
    file = write(
        "base/shop.yaml", DEPLOYMENT.replace("image: shop\n", f"image: shop\n{privileged}")
    )
    write("base/kustomization.yaml", "resources: [shop.yaml]\n")
    patch = (
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop}, spec: {replicas: 9, "
        "template: {spec: {containers: [{name: side, image: 'side:1', "
        "securityContext: {privileged: true}}]}}}}"
    )
    write(
        "overlays/side/kustomization.yaml",
        f'resources: [../../base]\nnamePrefix: a-\npatches: [{{patch: "{patch}"}}]\n',
    )
    write("overlays/plain/kustomization.yaml", "resources: [../../base]\n")
    policy = "spec: {policy: privileged-containers}"
    write("policies.yaml", POLICIES.replace("spec: {policy: image-tags}", policy))
    code, _, err = check("--fix", "--unsafe-fixes", "overlays")
    assert (code, err) == (
        1,
        [
            "note: base/shop.yaml: fixed 1 field",
            "note: base/shop.yaml: 2 fixes left out: a template, generator or patch sets the values",
        ],
    )
    assert file.read_text() == DEPLOYMENT


def test_directories_are_rendered_side_by_side(check, program):
    """Each waits for all of them to begin, as far as there are cores."""
    count = min(2, rendering.os.cpu_count() or 1)
    program(
        "kustomize",
        "open(f'began-{os.getpid()}', 'w')\n"
        f"while len([each for each in os.listdir() if each.startswith('began')]) < {count}: time.sleep(0.01)\n"
        "print('{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}')",
    )
    for name in "ab"[:count]:
        write(f"{name}/kustomization.yaml", "")
    assert check("a", "b"[: count - 1] or "a") == (0, [f"{count} objects: {count} unmatched"], [])


@pytest.fixture
def alive():
    """Return a pipe: a program of SLOW and its child process keep it open, so it ends with them."""
    os.mkfifo("alive")
    pipe = os.open("alive", os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(pipe, True)
    with os.fdopen(pipe, "rb", buffering=0) as reader:
        yield reader


SLOW = """
os.fork()
with open("alive", "wb", buffering=0) as pipe:
    pipe.write(b"x")
    time.sleep(60)
    pipe.write(b"the program was not killed")
"""


@pytest.mark.long
def test_a_program_that_does_not_end_is_killed_with_its_children(
    check, program, alive, monkeypatch
):
    """A child process that keeps the output open is not waited for."""
    monkeypatch.setattr(rendering, "TIME_LIMIT", 1)
    program("kustomize", SLOW)
    write("app/kustomization.yaml", "")
    write("app/shop.yaml", DEPLOYMENT)
    code, out, err = check("app")
    assert b"not killed" not in alive.readall()
    assert (code, out[0]) == (3, "denied  Deployment default/shop  (app/shop.yaml:1)")
    assert err[-1] == "app: kustomize did not finish within 1 s"


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_programs_end_with_the_command(program, alive, number):
    """Neither a program nor its child process runs on after Ctrl-C or the end of a CI job."""
    program("kustomize", SLOW)
    write("app/kustomization.yaml", "")
    # A test run under nohup ignores SIGHUP, and its child processes would too.
    command = [
        "/usr/bin/env",
        "--default-signal",
        COMMAND,
        "check",
        "--policies",
        "baseline",
        "app",
    ]
    with subprocess.Popen(command) as process:
        with Path("alive").open("wb"):  # until both have begun
            begun = alive.read(1) + alive.read(1)
        process.send_signal(number)
        assert process.wait(60) == 128 + number
    assert begun + alive.readall() == b"xx"
