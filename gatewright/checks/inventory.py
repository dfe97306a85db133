"""Take stock of what the arguments of a command name: plain files, charts and kustomizations.

Each file below a directory is read as a plain file, is an input of a chart or kustomization that is
rendered, is excluded by a rule, or is skipped with a reason: `Skipped` has a line for each reason.
"""

import glob
import gzip
import os
import tarfile
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from itertools import islice
from pathlib import Path

from config.directories import expand_glob, walk_directory
from config.documents import (
    Document,
    DocumentError,
)
from config.printable import printable
from gatewright.checks.charts import CHART, CONSUMED, NO_ARCHIVE, chart_inputs, is_library, is_part
from gatewright.checks.checked_tree import (
    IGNORE_FILE,
    ChangedFiles,
    CheckedTree,
    IgnoredPaths,
    IgnoreFiles,
    resolve,
)
from gatewright.checks.kustomizations import KUSTOMIZATIONS, Kustomization, read_all
from kube.resource import group_kind

MAX_NAMES = 3  # in a line; a report of a large tree must stay readable


class Skipped:
    """Places by the reason for which they are skipped."""

    def __init__(self) -> None:
        """Start empty."""
        self.places: dict[str, dict[str, None]] = {}
        """Places by reason, in order, as they are shown."""

    def __len__(self) -> int:
        """Return the number of places."""
        return sum(map(len, self.places.values()))

    def add(self, place: Path | str, reason: str) -> None:
        """Skip a file or directory, or a place such as `file:line`."""
        self.places.setdefault(reason, {})[printable(place)] = None

    def keep(self, is_kept: Callable[[str], bool]) -> None:
        """Keep some places."""
        self.places = {
            reason: kept
            for reason, places in self.places.items()
            if (kept := {place: None for place in places if is_kept(place)})
        }

    def lines(self) -> Iterator[str]:
        """Yield a line for each reason, with the first places and the number of the others."""
        for reason, places in self.places.items():
            first = [*places][:MAX_NAMES]
            more = len(places) - len(first)
            yield f"{', '.join(first)}{f' and {more} more' if more else ''}: {reason}"


def kinds_of(documents: Iterable[Document]) -> str:
    """Return the kinds of objects, each with its number: `2 ConfigMap, 1 Role`."""
    counts = Counter(group_kind(each.value)[1] for each in documents)
    return ", ".join(f"{number} {printable(kind)}" for kind, number in sorted(counts.items()))


SUFFIXES = frozenset({".yaml", ".yml", ".json"})
PACKAGED = "skipped: a packaged chart; unpack it and name its directory"
LIBRARY = "skipped: a library chart, which renders no objects of its own"
COMPONENT = "skipped: a Component that no kustomization here includes"
INPUT = "skipped: a patch or other input of a kustomization that is not built"
NOT_BUILT = (
    "not built: neither kustomize nor kubectl is installed; its files are judged without patches"
)
MAX_FAULTS = 3  # of one kustomization in a line
LINK = "skipped: a link to a directory; name the directory"


STDIN = Path("-")


@dataclass(slots=True)
class Inventory:
    """What there is to read: plain files, and the files that stand for what is rendered.

    These are Chart.yaml and kustomization.yaml. Keys are resolved paths.
    """

    units: dict[Path, Path] = field(default_factory=dict)
    trees: dict[Path, CheckedTree] = field(default_factory=dict)
    kustomizations: dict[Path, dict[Path, Kustomization]] = field(default_factory=dict)
    """What each kustomization includes, by its directory; itself, too."""
    problems: list[str] = field(default_factory=list)
    skipped: Skipped = field(default_factory=Skipped)
    _named: set[Path] = field(default_factory=set)  # directories
    _ignore_files: IgnoreFiles = field(init=False)

    def __post_init__(self) -> None:
        self._ignore_files = IgnoreFiles(self.problems.append)

    def add(self, manifest: str) -> None:
        """Add what an argument names."""
        if manifest == "-":
            self.units[STDIN] = STDIN
        elif glob.has_magic(manifest) and not os.path.exists(manifest):  # noqa: PTH110
            for path in self._glob(manifest):
                self._add_path(path)
        else:
            self._add_path(Path(manifest))

    def _glob(self, pattern: str) -> Iterator[Path]:
        paths = expand_glob(pattern, self.problems.append)
        if not paths:
            self.problems.append(f"{printable(pattern)}: no file matches")
        yield from (path for path in paths if path.is_dir() or is_manifest(path.name))

    def _add_path(self, path: Path) -> None:
        ignored, tree = IgnoredPaths(path, self._ignore_files), CheckedTree.of(path)
        if path.is_dir():
            self._named.add(resolve(path))
            before = self._count()
            self._add_directory(path, tree, ignored)
            if self._count() == before:
                but = f" but those that {IGNORE_FILE} lists" * ignored.is_in_use
                self.skipped.add(path, f"no manifests{but}")
        elif ignored(path):
            self.skipped.add(path, f"skipped: listed in {IGNORE_FILE}")
        elif is_packaged(path):
            self.problems.append(f"{printable(path)}: {PACKAGED.replace('skipped', 'not judged')}")
        else:
            if is_rendered(path):
                self._named.add(resolve(path.parent))
            self._add_file(path, tree)

    def _count(self) -> int:
        return len(self.units) + len(self.problems) + len(self.skipped)

    def _add_directory(self, top: Path, tree: CheckedTree, ignored: IgnoredPaths) -> None:
        """Add the charts, kustomizations and manifests in and below a directory."""
        whole = resolve(top)
        for here, folders, names, linked in walk_directory(top, self.problems.append):
            folders[:] = [
                name
                for name in folders
                if not name.startswith(".") and not ignored(here / name, "/")
            ]
            files = [
                name for name in names if not name.startswith(".") and not ignored(here / name)
            ]
            if CHART in files:
                if not is_part(here):  # a part is rendered with its chart
                    self._add_file(here / CHART, tree)
                folders[:] = [name for name in folders if name not in CONSUMED]
                files = [name for name in files if name not in CONSUMED]
            for name in files:
                path = here / name
                # Reading a named pipe would wait for a writer.
                if (is_manifest(name) or name in KUSTOMIZATIONS) and not path.is_fifo():
                    self._add_file(path, tree)
                elif is_packaged(path) and not is_part(path):
                    self.skipped.add(path, PACKAGED)
            for name in linked:
                is_hidden = name.startswith(".") or ignored(here / name, "/")
                if not is_hidden and not resolve(here / name).is_relative_to(whole):
                    self.skipped.add(here / name, LINK)

    def _add_file(self, path: Path, tree: CheckedTree) -> None:
        whole = resolve(path.parent) / path.name if is_rendered(path) else resolve(path)
        try:
            tree.require_link(path)
        except DocumentError as error:
            self.problems.append(str(error))
        else:
            if path.name == CHART and is_library(path.parent):
                self.skipped.add(path.parent, LIBRARY)
            elif whole not in self.units:
                self.units[whole], self.trees[whole] = path, tree

    def settle(self, find_builder: Callable[[], Sequence[str]]) -> None:
        """Decide which kustomizations are built, and which files are only their inputs.

        `find_builder` returns the command that builds them, if there is one. A kustomization that
        another one includes is built with that one, unless an argument names it. If one cannot be
        built, its whole objects are plain files.
        """
        files = {whole.parent: whole for whole in self.units if whole.name in KUSTOMIZATIONS}
        if not files:
            return
        can_build = bool(find_builder())
        kustomizations = self.kustomizations
        for directory, whole in files.items():
            kustomizations[directory] = read_all(self.units[whole], self.trees[whole])
        included = set[Path]().union(*(all.keys() - {each} for each, all in kustomizations.items()))
        roots = {each for each in kustomizations if each in self._named or each not in included}
        roots = {each for each in roots if not kustomizations[each][each].is_component}
        covered = set[Path]().union(*(kustomizations[each] for each in roots))
        # Kustomizations that include each other: the program that builds them reports it.
        roots |= {path for path, all in kustomizations.items() if path in included - covered
                  and not all[path].is_component}  # fmt: skip
        built = {
            root for root in roots if self._may_build(kustomizations[root], can_build=can_build)
        }
        for directory in kustomizations.keys() - built:
            del self.units[files[directory]]
        covered = set[Path]().union(*(kustomizations[each] for each in built))
        for all in kustomizations.values():
            for directory, one in all.items():
                self._leave_out(one, is_built=directory in covered)

    def keep(self, kept: Container[Path], changes: ChangedFiles) -> None:
        """Keep these units, and what is skipped of the changed files."""
        self.units = {whole: path for whole, path in self.units.items() if whole in kept}
        self.skipped.keep(lambda place: changes.touch([Path(place)]))

    def inputs(self, whole: Path, values: Iterable[str]) -> list[Path]:
        """Return the files and directories that a unit depends on; `values` are those of charts."""
        if whole.name == CHART:
            return [*chart_inputs(self.units[whole].parent), *map(Path, values)]
        if whole.name in KUSTOMIZATIONS:
            all = self.kustomizations[whole.parent].values()
            return [path for one in all for path in (one.file, *one.resources, *one.inputs)]
        return [whole]

    @property
    def rendered(self) -> dict[Path, Path]:
        """The units that are charts or kustomizations."""
        return {whole: path for whole, path in self.units.items() if is_rendered(path)}

    def resources(self, whole: Path) -> list[Path]:
        """Return the files with whole objects of a kustomization; none of a chart."""
        all = self.kustomizations.get(whole.parent, {}) if whole.name in KUSTOMIZATIONS else {}
        return [path for one in all.values() for path in one.resources]

    def _may_build(self, all: Mapping[Path, Kustomization], *, can_build: bool) -> bool:
        """Return whether a kustomization can be built; report why not."""
        faulty = [one for one in all.values() if one.faults]
        for one in faulty:
            why = "; ".join(one.faults[:MAX_FAULTS])
            self.problems.append(f"{printable(one.file)}: not judged: {why}")
        if not (faulty or can_build):
            one = next(iter(all.values()))
            self.problems.append(f"{printable(one.file.parent)}: {NOT_BUILT}")
        return can_build and not faulty

    def _leave_out(self, one: Kustomization, *, is_built: bool) -> None:
        """Read no file as a plain one that is an input of a kustomization."""
        if one.is_component and not is_built:
            self.skipped.add(one.file.parent, COMPONENT)
        for path in one.inputs:
            if self.units.pop(resolve(path), None) and not is_built:
                self.skipped.add(path, INPUT)
        for path in one.resources if is_built else ():
            self.units.pop(resolve(path), None)


FIRST_FILES = 20  # of an archive, among which Chart.yaml is
MAX_BEGINNING = 16 << 20  # bytes of it, unpacked, in which these files are


def is_packaged(file: Path) -> bool:
    """Whether a file is an archive of a chart."""
    if file.suffix != ".tgz" or not file.is_file():
        return False
    try:
        with gzip.open(file) as unpacked:
            beginning = BytesIO(unpacked.read(MAX_BEGINNING))
        with tarfile.open(fileobj=beginning, mode="r:") as archive:
            # helm packages Chart.yaml first; other programs, the directory
            first = islice(archive, FIRST_FILES)
            return any(entry.name.endswith(f"/{CHART}") for entry in first)
    except NO_ARCHIVE:
        return False


def is_rendered(path: Path) -> bool:
    """Whether a file stands for a chart or a kustomization."""
    return path.name == CHART or path.name in KUSTOMIZATIONS


def is_manifest(name: str) -> bool:
    """Whether a file of this name may have objects."""
    return Path(name).suffix.lower() in SUFFIXES
