"""`gatewright plan`: print what the controller would make, without a cluster."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import yaml
from pydantic import ValidationError

from config.converters import ConversionError, stored
from config.defaulting import defaulted
from config.documents import Document, DocumentError, read_documents, yaml_files
from config.faults import FaultsError, did_you_mean, faults, parse
from controller.reconcilers import planned_kinds
from controller.runtime.plan import Apply, Given, Once, Plan, PlannedKind, Step
from webhook.harness.manifests import require_object


@click.command
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE…")
def command(files: tuple[Path, ...]) -> None:
    """Print, as YAML, what the controller would make of the custom resources in FILE, all steps of each."""
    documents = [document for path in files for file in yaml_files(path) for document in read_documents(file)]
    click.echo("---\n".join(text for document in documents for text in _planned(document)), nl=False)


def _planned(document: Document) -> Iterator[str]:
    kinds = {(kind.resource.api_version, kind.resource.kind): kind for kind in planned_kinds()}
    require_object(document)
    value = _stored(document)
    kind = kinds.get((value["apiVersion"], value["kind"]))
    if kind is None:
        found = f"{value['apiVersion']} {value['kind']}"
        known = [" ".join(each) for each in kinds]
        raise DocumentError(f"{document.where('kind')}: {found} is not planned here{did_you_mean(found, known)}")
    if not value["metadata"].get("name"):
        path = "metadata.name"
        raise DocumentError(f"{document.where(path)}: {path}: missing; what is made is named after it")
    plan = _plan(kind, document, value)
    title = f"{kind.resource.kind} {value['metadata']['name']}"
    if plan.problem is not None:
        raise DocumentError(f"{document.where()}: {title}: {plan.problem.message}")
    for step in plan.steps:
        for object in _objects(step):
            needs = f", once {' and '.join(step.needs)} hold" if step.needs else ""
            yield f"# {title}: step {step.name}{needs}\n{yaml.safe_dump(object, sort_keys=False)}"


def _stored(document: Document) -> dict[str, Any]:
    """Return the object in the version that is planned."""
    try:
        return stored(document.value)
    except ConversionError as error:
        raise DocumentError(f"{document.where()}: {error}") from None


def _plan(kind: PlannedKind, document: Document, value: dict[str, Any]) -> Plan:  # type: ignore[type-arg]
    object = defaulted(value)
    metadata = {"namespace": "default"} | object["metadata"]
    try:
        parse(kind.type.model_fields["spec"].annotation, object.get("spec"))
        resource = kind.type.model_validate(object | {"metadata": metadata})
    except ValidationError as error:
        paths = faults(kind.type, error)
    except FaultsError as error:
        paths = [(f"spec.{path}" if path else "spec", text) for path, text in error.faults]
    else:
        return kind.plan(resource, Given(), datetime.now(UTC))
    raise DocumentError("\n".join(f"{document.where(path)}: {path}: {text}" for path, text in paths))


def _objects(step: Step) -> Iterator[dict[str, object]]:
    yield from (write.object for write in step.writes if isinstance(write, Apply | Once))
