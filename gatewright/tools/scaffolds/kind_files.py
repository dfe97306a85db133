"""The files of a new kind, as texts by path: in Gatewright, or in a package."""

import keyword
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from string import Template

from gatewright import __version__, kind

# By field of a new kind. The name of a kind with List appended has at most 63 letters.
RULES = {
    "kind": (
        re.compile(r"(?=.{,59}$)[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*"),
        "a kind is written in CamelCase, such as Gadget, in at most 59 letters",
    ),
    "group": (
        re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+"),
        "a group is a domain name, such as example.com",
    ),
    "version": (
        re.compile(r"v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?"),
        "a version is written as v1, v1beta1 or v1alpha1",
    ),
    "plural": (
        re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?"),
        "a plural is lower-case letters, digits and '-', at most 63, such as gadgets",
    ),
}
IMPORT = re.compile(r"^(from \S+ import )([^(\n]+)$", re.MULTILINE)
WIDTH = 100  # maximum line length
# Letters; variables for objects of a kind with a longer name are called `item`.
LONG_NAME = 30
LONG_CLUSTER_SCOPED_NAME = 15
PACKAGE_NAME = re.compile(r"[a-z][a-z0-9_]*")
TAKEN_PACKAGES = frozenset(
    {"certs", "config", "controller", "gatewright", "kube", "tests", "webhook"}
)
# Names that the code of every kind uses.
USED = frozenset(name.lower() for name in kind.__all__) | {
    "configmap", "desired", "field", "labels", "made", "message", "name", "now", "stored", "utc",
    "write",
}  # fmt: skip

PROJECT = {
    "config/api/$name.py": ("type_head", "type"),
    "controller/reconcilers/$name.py": ("plan_head", "plan"),
    "tests/config/api/test_$name.py": ("test_type_head", "test_type"),
    "tests/controller/reconcilers/test_$name.py": ("test_plan_head", "test_plan"),
    "config/samples/my-$name.yaml": ("sample",),
    "docs/kinds/$name.md": ("page",),
}
IN_PACKAGE = {
    "$package/$name.py": ("both_head", "type", "plan"),
    "tests/test_$name.py": ("test_both_head", "test_plan", "test_type"),
    "samples/my-$name.yaml": ("sample",),
}
PACKAGE = {
    "pyproject.toml": ("pyproject",),
    "README.md": ("readme",),
    "Makefile": ("makefile",),
    "$package/__init__.py": ("init",),
    **IN_PACKAGE,
}


# What the templates say of a kind whose objects are in namespaces.
NAMESPACED = {
    "scope": "",
    "namespace_field": "",
    "namespace_sample": "",
    "namespace_row": "",
    "stored_namespace": ', "namespace": "default"',
    "child_namespace": "namespace",
    "child_place": "",
    "place": '"default"',
    "written": "default/",
    "where": "",
}


class ScaffoldError(ValueError):
    """An invalid name of a kind, group, version, plural or package; the message has the reason."""


@dataclass(frozen=True, slots=True)
class NewKind:
    """The names of a new kind. Raises ScaffoldError if one is invalid."""

    kind: str
    group: str
    version: str
    plural: str
    is_cluster_scoped: bool = False

    def __post_init__(self) -> None:
        """Reject names that the API server rejects, or that Python or the templates use."""
        for field, (pattern, rule) in RULES.items():
            if not pattern.fullmatch(value := getattr(self, field)):
                raise ScaffoldError(f'"{value}": {rule}')
        if keyword.iskeyword(self.module) or keyword.iskeyword(self.kind) or self.module in USED:
            raise ScaffoldError(
                f'"{self.kind}": this name is already used in the code of every kind'
            )

    @property
    def module(self) -> str:
        """The name of its Python module."""
        return self.kind.lower()

    @property
    def constant(self) -> str:
        """The name of its PlannedKind."""
        return self.kind.upper()


def cluster_scoped(it: str) -> dict[str, str]:
    """Return what the templates say of a cluster-scoped kind: its spec names the namespace.

    `it` is the variable for an object.
    """
    field = '    namespace: str = Field("default", description="Namespace of the ConfigMap.")\n'
    return {
        "scope": "        namespaced=False,\n",
        "namespace_field": field,
        "namespace_sample": "  namespace: default\n",
        "namespace_row": "| `spec.namespace` | default | namespace of the ConfigMap |\n",
        "stored_namespace": "",
        "child_namespace": "spec.namespace",
        "child_place": f", {it}.spec.namespace",
        "place": "None",
        "written": "",
        "where": " in the namespace `spec.namespace`",
    }


def plural_of(kind: str) -> str:
    """Return the English plural of a kind's name."""
    name = kind.lower()
    if name.endswith(("s", "x", "ch", "sh")):
        return f"{name}es"
    return f"{name[:-1]}ies" if re.search("[^aeiou]y$", name) else f"{name}s"


def in_project(kind: NewKind) -> dict[str, str]:
    """Return the files of a kind of Gatewright itself."""
    return _fill(PROJECT, kind, "")


def in_package(kind: NewKind, project: str, *, is_new: bool) -> dict[str, str]:
    """Return the files of a kind in the package of the distribution `project`.

    With `is_new`, also return the other files of the package.
    """
    return _fill(PACKAGE if is_new else IN_PACKAGE, kind, project)


def package_of(project: str) -> str:
    """Return the import name of a distribution's package.

    Raises ScaffoldError if it is not a valid name.
    """
    package = re.sub(r"[-.]+", "_", project.lower())
    if not PACKAGE_NAME.fullmatch(package) or keyword.iskeyword(package):
        raise ScaffoldError(
            f"\"{project}\": a package is named in letters, digits and '-', such as our-kinds"
        )
    if package in TAKEN_PACKAGES or package in sys.stdlib_module_names:
        raise ScaffoldError(f'"{project}": Gatewright or Python already has a package of this name')
    return package


def entry_point(kind: NewKind, project: str) -> str:
    """Return the entry point by which a package declares the kind."""
    return f'{kind.module} = "{package_of(project)}.{kind.module}:{kind.constant}"'


def _fill(paths: Mapping[str, tuple[str, ...]], kind: NewKind, project: str) -> dict[str, str]:
    longest = LONG_CLUSTER_SCOPED_NAME if kind.is_cluster_scoped else LONG_NAME
    it = kind.module if len(kind.module) <= longest else "item"
    names = {
        "Kind": kind.kind,
        "name": kind.module,
        "it": it,
        "CONSTANT": kind.constant,
        "Object": "Object" if project else "JsonObject",
        "group": kind.group,
        "version": kind.version,
        "plural": kind.plural,
        "project": project,
        "package": package_of(project) if project else "",
        "release": __version__,
        **(cluster_scoped(it) if kind.is_cluster_scoped else NAMESPACED),
    }
    return {
        Template(path).substitute(names): IMPORT.sub(
            _fit, "\n\n".join(Template(_template(part)).substitute(names) for part in parts)
        )
        for path, parts in paths.items()
    }


def _fit(match: re.Match[str]) -> str:
    """Return an import; if it is longer than a line, with one name per line."""
    names = "".join(f"    {name},\n" for name in match[2].split(", "))
    return match[0] if len(match[0]) <= WIDTH else f"{match[1]}(\n{names})"


def _template(name: str) -> str:
    return (files("gatewright.tools.scaffolds") / "templates" / f"{name}.txt").read_text()
