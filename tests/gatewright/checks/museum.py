"""Hostile repositories: what a pull request of a stranger may have, and what `check` must answer.

Below the directory of a repository, `outside` is what it must not reach: a file with a secret, a file
to change, and the server on the loopback at the port that `{port}` stands for.
"""

import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

SECRET = "tok-1b2c3d4e5f"
CHART = "apiVersion: v2\nname: c\nversion: 1.0.0\n"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: production}
spec: {hostPID: true, containers: [{name: a, image: 'IMAGE'}]}
"""
READS = '{{ .Files.Get "files/it" | b64enc }}{{ .Files.Get "files/it" | trunc 200 | quote }}'
BOMB = (
    '{{ $x := "aaaaaaaaaaaaaaaa" }}{{ range until 30 }}{{ $x = print $x $x }}{{ end }}a: {{ $x }}'
)
FLOOD = "{{ range until 100000 }}{{ range until 100000 }}\n---\na: aaaaaaaaaaaaa{{ end }}{{ end }}"


MANY = "# a\n" * 200_000 + f"{{{{ range until 1000 }}}}\n---\n{POD}{{{{ end }}}}"


def aliased_pods(pods: int, containers: int) -> str:
    """Return a List of Pods that share their containers by an alias."""
    item = "- {{apiVersion: v1, kind: Pod, metadata: {{name: a{}}}, spec: {{containers: {}}}}}\n"
    shared = ", ".join(f"{{name: c{at}, image: a}}" for at in range(containers))
    first = item.format(0, f"&c [{shared}]")
    return "kind: List\nitems:\n" + first + "".join(item.format(at, "*c") for at in range(1, pods))


class Exhibit(NamedTuple):
    """A repository, the exit code, and what a line of the report must contain."""

    name: str
    write: Callable[[Path], object]
    code: int
    says: str
    arguments: tuple[str, ...] = (".",)


def write(top: Path, name: str, text: str) -> None:
    """Write a file of a repository."""
    path = top / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def tree(*entries: tuple[str, str]) -> Callable[[Path], object]:
    """Return a function that writes files, and links where a text begins with `-> `."""

    def write_all(top: Path) -> None:
        for name, text in entries:
            if text.startswith("-> "):
                path = top / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(text.removeprefix("-> "))
            else:
                write(top, name, text)

    return write_all


def nest(top: Path) -> None:
    """Write 1,500 nested directories with an object in the last one."""
    here = top
    for _ in range(1500):
        here /= "d"
        here.mkdir()


def chart_with_link(target: str) -> Callable[[Path], object]:
    """Return a function that writes a chart that prints what a link in it points to."""
    return tree(
        ("c/Chart.yaml", CHART),
        ("c/templates/a.yaml", POD.replace("'IMAGE'", READS)),
        ("c/files/it", f"-> {target}"),
    )


def kustomization(text: str, *more: tuple[str, str]) -> Callable[[Path], object]:
    """Return a function that writes a kustomization with a pod beside it."""
    return tree(("k/kustomization.yaml", text), ("k/a.yaml", POD), *more)


def archive_bomb(top: Path) -> None:
    """Write an archive with a header of 40 MB."""
    with tarfile.open(top / "c.tgz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        entry = tarfile.TarInfo("c/Chart.yaml")
        entry.pax_headers = {"comment": "x" * 40_000_000}
        archive.addfile(entry)


def chart_with_packed_schema(top: Path) -> None:
    """Write a chart with an archive of a chart, in an archive, whose schema is at a URL."""
    schema = b'{"properties": {"a": {"$ref": "http://127.0.0.1:9/a.json"}}}'
    inner = packed(("y/Chart.yaml", CHART.encode()), ("y/./values.schema.json", schema))
    write(top, "c/Chart.yaml", CHART)
    (top / "c/charts").mkdir()
    outer = packed(("x/Chart.yaml", CHART.encode()), ("x/charts/y.tgz", inner))
    (top / "c/charts/x.tgz").write_bytes(outer)


def packed(*entries: tuple[str, bytes]) -> bytes:
    """Return an archive of files."""
    file = BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, content in entries:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, BytesIO(content))
    return file.getvalue()


LINK = "not read: a link out of"
REMOTE = "is remote, and the network is not used; vendor it"
URL = "http://127.0.0.1:{port}/a.yaml"

# Refused before any program starts.
REFUSED = [
    Exhibit(
        "a chart with a link to the environment", chart_with_link("/proc/self/environ"), 3, LINK
    ),
    Exhibit("a chart with a link to a file", chart_with_link("../../../outside/secret"), 3, LINK),
    Exhibit("a chart with a link to a directory of files", chart_with_link("/etc"), 3, LINK),
    Exhibit(
        "a subchart that is a link out of the repository",
        tree(("c/Chart.yaml", CHART), ("c/charts/x", "-> ../../../outside")),
        3,
        LINK,
    ),
    Exhibit(
        "a chart with a link to the token of the checkout",
        tree(
            ("c/Chart.yaml", CHART),
            ("c/templates/a.yaml", POD.replace("'IMAGE'", READS)),
            ("c/files/it", "-> ../../.git/config"),
        ),
        3,
        LINK,
    ),
    Exhibit(
        "values that are a link to the environment",
        tree(("c/Chart.yaml", CHART), ("v.yaml", "-> /proc/self/environ")),
        3,
        LINK,
        (".", "--values", "v.yaml"),
    ),
    *(
        Exhibit(
            f"a kustomization with a URL in {field.split(':')[0]}", kustomization(field), 3, REMOTE
        )
        for field in (
            f"resources: [a.yaml, '{URL}']",
            f"resources: [a.yaml, '{URL.upper()}']",
            f"bases: ['{URL}']",
            f"components: ['{URL}']",
            f"crds: ['{URL}']",
            f"configurations: ['{URL}']",
            f"patchesStrategicMerge: ['{URL}']",
            f"patches: [{{path: '{URL}'}}]",
            f"patchesJson6902: [{{path: '{URL}'}}]",
            f"replacements: [{{path: '{URL}'}}]",
            f"openapi: {{path: '{URL}'}}",
            f"configMapGenerator: [{{name: a, files: ['a={URL}']}}]",
            f"secretGenerator: [{{name: a, envs: ['{URL}']}}]",
            f"transformers: ['{URL}']",
            f"generators: ['{{apiVersion: builtin, kind: ConfigMapGenerator, metadata: {{name: a}}, "
            f'files: ["{URL}"]}}\']',
        )
    ),
    Exhibit(
        "a directory with the name of a URL",
        kustomization(f"resources: ['{URL}']", ("k/http:/127.0.0.1:1/a.yaml", POD)),
        3,
        REMOTE,
    ),
    Exhibit(
        "a kustomization that includes a repository by SSH",
        kustomization("resources: ['git@127.0.0.1:a/b']"),
        3,
        REMOTE,
    ),
    Exhibit(
        "a kustomization that includes a directory elsewhere",
        kustomization("resources: [../../outside]"),
        3,
        "../../outside is outside of",
    ),
    Exhibit(
        "a kustomization that makes a ConfigMap of the token of the checkout",
        tree(("kustomization.yaml", "configMapGenerator: [{name: a, files: [.git/config]}]")),
        3,
        ".git/config is outside of",
    ),
    Exhibit(
        "a kustomization with a chart of a repository",
        kustomization("helmCharts: [{name: a, repo: 'http://127.0.0.1:{port}'}]"),
        3,
        "helmCharts is not rendered",
    ),
    Exhibit(
        "a manifest that is a link out", tree(("a.yaml", "-> ../outside/victim.yaml")), 3, LINK
    ),
    Exhibit(
        "a named manifest that is a link out",
        tree(("a.yaml", "-> ../outside/victim.yaml")),
        3,
        LINK,
        ("a.yaml",),
    ),
    Exhibit(
        "a manifest to fix that is a link out",
        tree(("a.yaml", "-> ../outside/victim.yaml")),
        3,
        LINK,
        (".", "--fix", "--unsafe-fixes"),
    ),
    *(
        Exhibit(
            f"{name} that is a link out",
            tree(("a.yaml", POD), (at, "-> ../outside/victim.yaml")),
            3,
            "not written: a link out of",
            (".", *arguments),
        )
        for name, at, *arguments in (
            ("a report", "r.html", "-o", "html=r.html"),
            (
                "a file of exceptions",
                "e",
                *("--write-exceptions", "e", "--reason", "a", "--expires", "2099-01-01"),
            ),
        )
    ),
    Exhibit(
        "a report in a directory that is a link out",
        tree(("a.yaml", POD), ("r", "-> ../outside")),
        3,
        "not written: a link out of",
        (".", "-o", "sarif=r/secret"),
    ),
    Exhibit(
        "a report that is a hook of Git",
        tree(("a.yaml", POD), ("r", "-> .git")),
        3,
        "not written: a link out of",
        (".", "-o", "json=r/config"),
    ),
    Exhibit("a manifest that is a device", tree(("a.yaml", "-> /dev/zero")), 3, LINK),
    Exhibit(
        "a manifest that is the environment", tree(("a.yml", "-> /proc/self/environ")), 3, LINK
    ),
    Exhibit("a directory 1,500 deep", nest, 3, "more than 100 nested directories"),
    Exhibit(
        "a glob of a directory 1,500 deep",
        nest,
        3,
        "more than 100 nested directories",
        ("**/*.yaml",),
    ),
    Exhibit(
        "policies 1,500 deep",
        nest,
        3,
        "more than 100 nested directories",
        ("--policies", ".", "nowhere"),
    ),
    Exhibit(
        "an alias bomb",
        tree(
            (
                "a.yaml",
                "a: &a [x, x, x, x, x, x, x, x, x]\n"
                + "".join(
                    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n"
                    for a, b in zip("abcdefgh", "bcdefghi", strict=True)
                ),
            )
        ),
        3,
        "document contains excessive aliasing; write it out",
    ),
    Exhibit(
        "600 Pods whose 300 containers are an alias",
        tree(("a.yaml", aliased_pods(600, 300))),
        3,
        "document contains excessive aliasing; write it out",
        (".", "--fix"),
    ),
    Exhibit("brackets 100,000 deep", tree(("a.json", "[" * 100_000)), 3, "nested too deeply"),
    Exhibit(
        "a glob over links to the directory itself",
        tree(("a", "-> ."), ("b", "-> ."), ("c", "-> .")),
        3,
        "**/*.yaml: no file matches",
        ("**/*.yaml",),
    ),
    Exhibit(
        "an ignore file without a meaning",
        tree((".gatewrightignore", "a\n[z-a]\n")),
        3,
        ".gatewrightignore:2: not used: no pattern of a .gitignore file",
    ),
    Exhibit(
        "an ignore file with 100,000 patterns",
        tree((".gatewrightignore", "*a*/**/b\n" * 100_000)),
        3,
        ".gatewrightignore: not used: larger than 64 KiB",
    ),
    Exhibit(
        "a project file that is the environment",
        tree(("pyproject.toml", "-> /proc/self/environ")),
        3,
        LINK,
    ),
    Exhibit("a project file that is a device", tree(("pyproject.toml", "-> /dev/zero")), 3, LINK),
    Exhibit(
        "brackets 30,000 deep in a project file",
        tree(("pyproject.toml", "[tool.gatewright]\na = " + "[" * 30_000)),
        3,
        "pyproject.toml: nested too deeply",
    ),
    Exhibit(
        "a key of a project file with 100,000 parts",
        tree(("pyproject.toml", "[tool.gatewright" + ".a" * 100_000 + "]")),
        3,
        "pyproject.toml: larger than 64 KiB",
    ),
    Exhibit("an archive that unpacks without an end", archive_bomb, 3, "no manifests"),
    *(
        Exhibit(
            f"a chart whose values schema is {name}",
            tree(("c/Chart.yaml", CHART), ("c/values.schema.json", f'{{"$ref": "{at}"}}')),
            3,
            f"c/values.schema.json: not judged: $ref {at.split('{')[0]}",
        )
        for name, at in (
            ("a file elsewhere", "file:///proc/self/environ"),
            ("beside the chart", "../../outside/secret"),
            ("on the loopback", "http://127.0.0.1:9/a.json"),
        )
    ),
    Exhibit(
        "a packed part of a chart whose values schema is on the loopback",
        chart_with_packed_schema,
        3,
        "c/charts/x.tgz: values.schema.json: not judged: $ref http://127.0.0.1:9/a.json",
    ),
    Exhibit(
        "names with commands for the CI",
        tree(("::error::a\n::error::b.yaml", "a: [")),
        3,
        "not YAML",
    ),
]

# Rendered by the real programs, within their bounds.
CHARTS = [
    *(
        Exhibit(
            f"a template that says it is {name}",
            tree(
                ("c/Chart.yaml", CHART),
                ("c/templates/a.yaml", f"---\n# Source: c/{at}\n{POD}"),
            ),
            1,
            "Pod production/a  (c/Chart.yaml:1)",
        )
        for name, at in (
            ("a file elsewhere", "../../outside/victim.yaml"),
            ("the memory of the process", "/proc/self/mem"),
        )
    ),
    Exhibit(
        "one large template with many objects",
        tree(("c/Chart.yaml", CHART), ("c/templates/a.yaml", MANY)),
        1,
        "999 more of the objects rendered",
    ),
    Exhibit(
        "a chart that is the repository prints the token of the checkout",
        tree(
            ("Chart.yaml", CHART),
            ("templates/a.yaml", POD.replace("'IMAGE'", READS.replace("files/it", ".git/config"))),
        ),
        1,
        "hostPID",
    ),
    Exhibit(
        "a chart prints the variables",
        tree(
            ("c/Chart.yaml", CHART),
            ("c/templates/a.yaml", POD.replace("'IMAGE'", '{{ expandenv "$MYSECRET" | quote }}')),
        ),
        3,
        'function "expandenv" not defined',
    ),
    Exhibit(
        "a chart needs too much memory",
        tree(("c/Chart.yaml", CHART), ("c/templates/a.yaml", BOMB)),
        3,
        "it needs more than 2 GiB of memory",
    ),
    Exhibit(
        "a chart writes without an end",
        tree(("c/Chart.yaml", CHART), ("c/templates/a.yaml", FLOOD)),
        3,
        "it needs more than 2 GiB of memory",
    ),
    Exhibit(
        "a chart whose directory has the name of an option",
        tree(
            ("--kubeconfig=x/Chart.yaml", CHART),
            ("--kubeconfig=x/templates/a.yaml", POD),
        ),
        1,
        "hostPID",
    ),
    Exhibit(
        "a chart whose dependencies are at a URL",
        tree(
            (
                "c/Chart.yaml",
                f"{CHART}dependencies: [{{name: x, version: 1.0.0, repository: 'http://127.0.0.1:{{port}}'}}]\n",
            )
        ),
        3,
        "missing in charts/ directory: x",
    ),
]
KUSTOMIZATIONS = [
    Exhibit(
        "a patch that is a link out",
        kustomization(
            "resources: [a.yaml]\npatches: [{path: p.yaml}]\n",
            ("k/p.yaml", "-> ../../outside/victim.yaml"),
        ),
        3,
        "k/kustomization.yaml: not judged: p.yaml is outside of",
    ),
    Exhibit(
        "kustomizations that include each other",
        tree(
            ("k/kustomization.yaml", "resources: [../l]"),
            ("l/kustomization.yaml", "resources: [../k]"),
        ),
        3,
        "cycle detected",
    ),
    Exhibit(
        "a generator that starts a program",
        kustomization(
            "generators: [g.yaml]\n",
            (
                "k/g.yaml",
                "apiVersion: v1\nkind: Run\nmetadata:\n  name: a\n  annotations:\n"
                "    config.kubernetes.io/function: |\n      exec: {path: ./run.sh}\n",
            ),
            ("k/run.sh", "#!/bin/sh\ntouch ../../outside/started\n"),
        ),
        3,
        "kubectl kustomize failed",
    ),
]
