"""What is written below a path is judged, excluded by a rule, or named with its reason."""

import json
import re
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.checks.sources import read_sources
from gatewright.console.options import ChartOptions

MARK = re.compile(r"mark-\d+-mark")
CHART = "apiVersion: v2\nname: {}\nversion: 1.0.0\n{}"
OBJECT = '{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "{0}"}}, "data": {{"of": "{1}"}}}}'
FORMS = {
    "one.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {0}}}\ndata: {{of: {1}}}\n",
    "flow.yml": OBJECT + "\n",
    "capitals.YAML": OBJECT + "\n",
    "json.json": OBJECT,
    "mark.yaml": "\ufeff" + OBJECT + "\n",
    "list.yaml": '{{"apiVersion": "v1", "kind": "List", "items": [' + OBJECT + "]}}\n",
    "lines.yaml": "apiVersion: v1\r\nkind: ConfigMap\r\nmetadata: {{name: {0}, annotations: {{of: {1}}}}}\r\n",
    "broken.yaml": "of: [{0} {1}\n",
    "values.yaml": "of: {1}\n",
    "half.yaml": "kind: ConfigMap\nspec: {{of: {1}}}\n",
    ".hidden.yaml": OBJECT,
    "ignored.yaml": OBJECT,
    "package.tgz": "{1}",
    "notes.txt": "{1}",
}
RULES = (".hidden.yaml", "ignored.yaml")


class Tree:
    """Files below a directory; each has a mark of its own."""

    def __init__(self, top):
        self.top, self.files, self.count = top, {}, 0
        (top / ".gatewrightignore").write_text("ignored.yaml\n")

    def write(self, path, text):
        """Write a file whose text has a name at {0} and a mark at {1}."""
        self.count += 1
        mark = f"mark-{self.count}-mark"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.format(f"n{self.count}", mark).encode())
        self.files[mark] = str(path.relative_to(self.top))
        return path

    def plain(self, directory, form):
        """Write a plain file."""
        self.write(directory / form, FORMS[form])

    def kustomization(self, directory, draw, included=()):
        """Write a kustomization that lists some files, includes others, and patches an object."""
        listed = self.write(directory / "listed.yaml", FORMS["one.yaml"])
        patch = FORMS["one.yaml"].replace("{0}", f"n{self.count}").replace("of:", "by:")
        self.write(directory / "patch.yaml", patch)
        self.write(directory / "data.txt", "{1}")
        text = {
            "resources": [listed.name, *included],
            "patches": [{"path": "patch.yaml"}],
            "configMapGenerator": [{"name": f"g{self.count}", "files": ["data.txt"]}],
        }
        if not draw:
            text |= {"kind": "Component", "apiVersion": "kustomize.config.k8s.io/v1alpha1"}
        (directory / "kustomization.yaml").write_text(json.dumps(text))

    def chart(self, directory, *, is_library=False, part=None):
        """Write a chart, with a chart in it or without."""
        kind = "type: library\n" * is_library
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "Chart.yaml").write_text(CHART.format(directory.name, kind))
        name = "templates/_part.yaml" if is_library else "templates/one.yaml"
        self.write(directory / name, FORMS["one.yaml"])
        self.write(directory / "crds/crd.yaml", FORMS["one.yaml"])
        self.write(directory / "ci/plain.yaml", FORMS["one.yaml"])
        if part is not None:
            self.chart(directory / "charts" / part)


@st.composite
def plans(draw):
    """Draw what a tree has: the forms of plain files, and the order of what is in it."""
    forms = draw(st.lists(st.sampled_from([*FORMS]), max_size=8, unique=True))
    parts = draw(
        st.lists(
            st.sampled_from(
                ["nested", "component", "orphan", "chart", "library", "link", "packed"]
            ),
            unique=True,
        )
    )
    return forms, parts, draw(st.booleans())


def write(top, plan, *, with_charts=True):
    """Write a tree."""
    forms, parts, is_built = plan
    tree = Tree(top)
    for form in forms:
        tree.plain(top / "plain", form)
    included = []
    if "nested" in parts:
        tree.kustomization(top / "apps/base", True)
        included.append("../base")
        tree.kustomization(top / "apps/root/own", True)
    if "orphan" in parts:
        tree.kustomization(top / "apps/orphan", False)
    if is_built:
        tree.kustomization(top / "apps/root", True, included)
        tree.plain(top / "apps/root", "one.yaml")
        tree.plain(top / "apps/root/below", "flow.yml")
    if "chart" in parts and with_charts:
        tree.chart(top / "apps/root/chart", part="part")
    if "library" in parts and with_charts:
        tree.chart(top / "library", is_library=True)
    if "link" in parts:
        elsewhere = Path(tempfile.mkdtemp(dir=top.parent))
        (top / "to-a-directory").symlink_to(elsewhere)
        (elsewhere / "a.yaml").write_text(OBJECT.format("elsewhere", "elsewhere"))
        (top / "to-a-file.yaml").symlink_to(elsewhere / "a.yaml")
    return tree


def hold(tree, sources):
    """Hold the account: each mark is in a judged object, or its file is excluded or named."""
    judged = set(
        MARK.findall("".join(json.dumps(each.value, default=str) for each in sources.judged))
    )
    named = [place for places in sources.skipped.places.values() for place in places]
    named += sources.problems
    lost = {
        file
        for mark, file in tree.files.items()
        if mark not in judged
        and Path(file).name not in RULES
        and not file.endswith((".tgz", ".txt"))
        and not any(_is_about(each, tree.top, file) for each in named)
    }
    assert not lost, (lost, named)
    texts = "\n".join(map(str, named))
    for name in ("to-a-directory", "to-a-file.yaml"):
        assert not (tree.top / name).exists() or name in texts


def _is_about(text, top, file):
    """Whether a line is about a file, or about a directory that it is in."""
    place = Path(file)
    return any(
        re.match(f"{re.escape(str(top / folder))}(:|$|/Chart.yaml|/kustomization.yaml)", text)
        for folder in (place, *place.parents)
    )


@pytest.mark.long
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=plans())
def test_every_object_is_judged_or_named(tmp_path, monkeypatch, helm, plan):
    """Kustomizations in kustomizations, components, charts, libraries, patches, forms, links."""
    monkeypatch.setenv("PATH", f"{helm.parent}:/usr/bin:/bin")
    top = Path(tempfile.mkdtemp(dir=tmp_path)) / "tree"
    top.mkdir()
    tree = write(top, plan)
    hold(tree, read_sources([str(top)], ChartOptions()))


@pytest.mark.long
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=plans())
def test_without_programs_nothing_passes_unseen(tmp_path, monkeypatch, plan):
    """What helm or kustomize would render is a problem, and the rest is judged or named."""
    monkeypatch.setenv("PATH", "/nowhere")
    top = Path(tempfile.mkdtemp(dir=tmp_path)) / "tree"
    top.mkdir()
    tree = write(top, plan)
    sources = read_sources([str(top)], ChartOptions())
    hold(tree, sources)
    rendered = [
        file_of_source
        for name in ("Chart.yaml", "kustomization.yaml")
        for file_of_source in (top / "apps").rglob(name)
        if "Component" not in file_of_source.read_text()
    ]
    assert bool(sources.problems) >= bool(rendered)
