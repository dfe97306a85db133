"""Read the manifests that a command line names: files, globs, charts, kustomizations."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from config.documents import (
    Document,
    DocumentError,
    read_documents,
    read_stdin,
    readable_documents,
)
from gatewright.checks.checked_tree import ChangedFiles
from gatewright.checks.inventory import STDIN, Inventory, Skipped, is_rendered
from gatewright.checks.rendering import NotRenderedError, Renderer, kustomize
from gatewright.console.options import ChartOptions
from webhook.harness.objects import is_object, require_object

NO_OBJECTS = "skipped: no Kubernetes objects"
SILENT = "skipped: templates that render nothing with these values"
OMITTED = "skipped in part: kustomizations leave out an object of the file"
HIDDEN = "skipped: hidden"
NO_OBJECT = "skipped: not a Kubernetes object"


@dataclass(slots=True)
class Sources:
    """The documents with objects, the ones to judge, read errors, and what is skipped."""

    documents: list[Document] = field(default_factory=list)
    judged: list[Document] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    skipped: Skipped = field(default_factory=Skipped)

    @property
    def notes(self) -> list[str]:
        """A line for each reason to skip something."""
        return [*self.skipped.lines()]


def read_sources(
    manifests: Sequence[str], charts: ChartOptions, changes: ChangedFiles | None = None
) -> Sources:
    """Return the objects in `manifests`.

    An unreadable file or document is a problem; the others are still read.

    Charts and kustomizations are rendered in parallel. With `changes`, only documents that depend
    on changed files are judged.
    """
    inventory = Inventory()
    for manifest in manifests:
        inventory.add(manifest)
    inventory.settle(kustomize)
    sources = Sources(problems=inventory.problems, skipped=inventory.skipped)
    judged = set(inventory.units)
    if changes is not None:
        judged = _keep_changed(inventory, charts, changes)
    rendered = inventory.rendered
    with Renderer(charts) if rendered else nullcontext() as renderer:
        if renderer is not None:
            for whole, path in rendered.items():
                renderer.start(path, inventory.trees[whole])
        built = list[Path]()
        for whole, path in inventory.units.items():
            is_judged = whole in judged or path == STDIN
            resources = inventory.resources(whole) if whole in rendered else ()
            for input_path, documents in _read(sources, path, renderer, resources):
                _add(sources, input_path, documents, is_judged=is_judged)
                built += [whole] * (is_judged and whole in rendered and input_path == path)
        if renderer is not None:
            _skip_omitted(sources, inventory, renderer, built)
    return sources


def _keep_changed(inventory: Inventory, charts: ChartOptions, changes: ChangedFiles) -> set[Path]:
    """Return the units that depend on changed files; keep no others if only these are read."""
    inputs = {whole: inventory.inputs(whole, charts.values) for whole in inventory.units}
    changed = {whole for whole, paths in inputs.items() if changes.touch(paths)}
    if changes.only:
        inventory.keep(changed, changes)
        for name in changes.hidden_files():
            inventory.skipped.add(name, HIDDEN)
    return changed


def _skip_omitted(
    sources: Sources, inventory: Inventory, renderer: Renderer, built: Sequence[Path]
) -> None:
    """Name what charts and kustomizations that were built have and do not render."""
    for whole in built:
        for template in renderer.silent(inventory.units[whole]):
            sources.skipped.add(template, SILENT)
        for resource in filter(renderer.omits, inventory.resources(whole)):
            sources.skipped.add(resource, OMITTED)


def _read(
    sources: Sources, path: Path, renderer: Renderer | None, resources: Sequence[Path]
) -> Iterator[tuple[Path, Sequence[Document]]]:
    """Yield the documents of a unit or, if it is a broken kustomization, of its `resources`."""
    try:
        if renderer is not None and is_rendered(path):
            documents, faults = readable_documents(renderer.documents(path))
        else:
            documents, faults = readable_documents(_documents(path))
    except NotRenderedError as error:
        sources.problems.append(str(error))
        return
    sources.problems += faults
    if documents or not faults:
        yield path, documents
    else:
        for resource in resources:
            yield from _read(sources, resource, renderer, ())


def _documents(path: Path) -> Iterator[Document]:
    return read_stdin() if path == STDIN else read_documents(path)


def _add(sources: Sources, path: Path, documents: Sequence[Document], *, is_judged: bool) -> None:
    """Add the objects of a file; report incomplete ones, and skip its other documents."""
    objects, others, problems = list[Document](), list[Document](), list[str]()
    for document in documents:
        if not is_object(document):
            others.append(document)
            continue
        try:
            require_object(document)
            objects.append(document)
        except DocumentError as error:
            problems.append(str(error))
    sources.documents += objects
    if is_judged:
        sources.judged += objects
        sources.problems += problems
        if len(others) == len(documents):
            sources.skipped.add("<stdin>" if path == STDIN else path, NO_OBJECTS)
        else:
            for document in others:
                sources.skipped.add(document.where(), NO_OBJECT)
