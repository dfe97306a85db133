"""`python -m tests.policies.api_lifecycles` writes webhook/policies/_api_lifecycles.py from the markers of k8s.io/api.

Kubernetes generates them into every version of an API: the releases that introduced, deprecated and
removed each type. The version of the module is the one that tests/controlplane/helm/go.mod pins.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from textwrap import wrap

ROOT = Path(__file__).parents[2]
MODULE = ROOT / "tests/controlplane/helm"
TABLE = ROOT / "webhook/policies/_api_lifecycles.py"
NEVER = 1_000
LINE = 100  # characters of one row
HEAD = '''"""Generated from k8s.io/api's lifecycle markers by `python -m tests.policies.api_lifecycles`.

Do not edit.
"""

LATEST = "1.{minor}"  # the release of Kubernetes that the markers are from
# Group and version, kinds, the version to use instead (with its group, if it differs), and the
# minor releases of Kubernetes 1 that deprecated and removed it.
LIFECYCLES = (
'''
NO_RESOURCES = {
    "AdmissionReview",
    "APIGroupDiscovery",
    "DeploymentRollback",
    "Scale",
}  # kinds of objects that are never created
METHOD = re.compile(r"func \(in \*(\w+)\) APILifecycle(\w+)\(\) \(.*?\{\s*return (?:1, )?(.*)")


@dataclass(frozen=True)
class Lifecycle:
    """One kind in one version."""

    group: str
    version: str
    kind: str
    deprecated: int
    removed: int

    @property
    def api_version(self) -> str:
        """The apiVersion of objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def maturity(self) -> tuple[int, int, int]:
        """The sort key of versions: v1alpha2 < v1beta1 < v1 < v2."""
        major, stage, minor = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", self.version).groups()  # type: ignore[union-attr]
        return {"alpha": 0, "beta": 1, None: 2}[stage], int(major), int(minor or 0)


def table() -> str:
    """Return the module's text."""
    answer = subprocess.run(
        ["go", "mod", "download", "-json", "k8s.io/api"],
        cwd=MODULE,
        capture_output=True,
        text=True,
        check=True,
    )
    module = json.loads(answer.stdout)
    latest = int(module["Version"].split(".")[1])
    rows = sorted(_rows([*_lifecycles(Path(module["Dir"]))], latest))
    lines = [
        f"{before}{kinds}{after}\n"
        for key, same in groupby(sorted(rows, key=_key), _key)
        for before, after in [
            (f'    ("{key[0]}", "', f'", "{_short(*key[:2])}", {key[2]}, {key[3]}),')
        ]
        for kinds in wrap(" ".join(sorted(row[1] for row in same)), LINE - len(before) - len(after))
    ]
    return "".join([HEAD.format(minor=latest), *lines, ")\n"])


def _key(row: tuple[str, str, str, int, int]) -> tuple[str, str, int, int]:
    return row[0], row[2], row[3], row[4]


def _short(old: str, new: str) -> str:
    """Return the new version without the group of the old one."""
    return new.removeprefix(f"{old.rpartition('/')[0]}/")


def _lifecycles(root: Path) -> Iterator[Lifecycle]:
    for file in root.glob("*/*/zz_generated.prerelease-lifecycle.go"):
        group = re.search(r'GroupName = "([^"]*)"', (file.parent / "register.go").read_text())
        found: dict[str, dict[str, str]] = {}
        for kind, what, value in METHOD.findall(file.read_text()):
            found.setdefault(kind, {})[what] = value
        for kind, marks in found.items():
            if group and kind not in NO_RESOURCES and not kind.endswith(("List", "Options")):
                deprecated, removed = (
                    int(marks.get(what, NEVER)) for what in ("Deprecated", "Removed")
                )
                yield Lifecycle(group[1], file.parent.name, kind, deprecated, removed)


def _rows(known: list[Lifecycle], latest: int) -> Iterator[tuple[str, str, str, int, int]]:
    """Yield deprecated versions with their replacement; a removal date without a replacement is only a guess."""
    for old in known:
        later = [each for each in known if each.kind == old.kind and each.removed > old.removed]
        instead = max(
            (each for each in later if _replaces(each, old)),
            key=lambda each: each.maturity,
            default=None,
        )
        if old.deprecated <= latest and (instead or old.removed <= latest):
            yield (
                old.api_version,
                old.kind,
                instead.api_version if instead else "",
                old.deprecated,
                old.removed,
            )


def _replaces(new: Lifecycle, old: Lifecycle) -> bool:
    return new.group == old.group or (
        old.group == "extensions" and new.group in ("apps", "networking.k8s.io")
    )


if __name__ == "__main__":
    TABLE.write_text(table())
