"""Plan a manifest's children and their children, without a cluster or with existing objects."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from config.converters import ConversionError, as_written, to_stored_version
from config.defaulting import fill_crd_defaults
from config.documents import Document, DocumentError
from config.faults import FaultsError, did_you_mean, faults, parse
from config.printable import printable
from controller.reconcilers import planned_kinds
from controller.runtime.child import fill_initial
from controller.runtime.kind import PlannedKind
from controller.runtime.plan import Apply, CreateOnly, Observed, Plan, Step
from kube.resource import JsonObject, Resource, group_version
from webhook.harness.objects import require_object

PlanSettings = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parent:
    """A custom resource to plan, as the API server would store it."""

    kind: PlannedKind[Any]
    object: JsonObject
    written: str = ""  # the API version of its manifest, which decides its field names

    @property
    def title(self) -> str:
        """Kind and name."""
        return f"{self.kind.resource.kind} {self.object['metadata']['name']}"

    @property
    def namespace(self) -> str:
        """The namespace of the object and its children."""
        return str(self.object["metadata"]["namespace"])

    def plan(self, observed: Observed, now: datetime) -> Plan:
        """Plan the children, given the observed objects.

        Raises DocumentError if the object is invalid or its plan has a problem.
        """
        try:
            plan = self.kind.plan(self.kind.type.model_validate(self.object), observed, now)
        except ValidationError as error:
            raise DocumentError(
                f"{self.title}: "
                f"{self.in_written_version(str(FaultsError(faults(self.kind.type, error))))}"
            ) from None
        except ValueError as error:  # such as a child in another namespace
            raise DocumentError(f"{self.title}: {error}") from error
        if plan.problem is not None:
            raise DocumentError(f"{self.title}: {self.in_written_version(plan.problem.message)}")
        return plan

    def in_written_version(self, text: str) -> str:
        """Return a message with the field names of the manifest's API version."""
        resource = self.kind.resource
        return as_written(text, resource.group, self.written, resource.kind)

    def with_object(self, object: JsonObject) -> "Parent":
        """Return the parent with the fields that policies set."""
        return replace(
            self, object=object | {"metadata": {"namespace": self.namespace} | object["metadata"]}
        )


@dataclass(frozen=True, slots=True)
class Planned:
    """One planned object."""

    parent: Parent
    step: Step
    write: Apply | CreateOnly

    @property
    def object(self) -> JsonObject:
        """The object, in its parent's namespace."""
        placed = {"namespace": self.parent.namespace} if self.resource.namespaced else {}
        object = fill_initial(self.write)
        return object | {"metadata": object["metadata"] | placed}

    @property
    def resource(self) -> Resource:
        """The resource of the object."""
        return self.parent.kind.owned_resource(self.write.object)

    @property
    def comment(self) -> str:
        """A comment with the parent, the step that creates the object, and its generated fields."""
        gates = " and ".join(self.step.depends_on)
        lines = [f"{self.parent.title}: step {self.step.name}{f', after {gates}' if gates else ''}"]
        if isinstance(self.write, CreateOnly):
            lines.append("created once, never changed afterwards")
            lines += [
                f"{path}: {random.length} random characters"
                for path, random in self.write.generate.items()
            ]
        else:
            lines += [
                f"{path}: set at creation; later, another writer decides"
                for path in self.write.initial
            ]
        return "".join(f"# {printable(line)}\n" for line in lines)


def parent_of(document: Document, namespace: str) -> Parent:
    """Return the parent in a document; `namespace` is the default namespace.

    Raises DocumentError if the document is invalid.
    """
    require_object(document)
    try:
        value = fill_crd_defaults(to_stored_version(document.value))
    except ConversionError as error:
        raise DocumentError(f"{document.where()}: {error}") from None
    kind = _kinds().get((value["apiVersion"], value["kind"]))
    if kind is None:
        written = f"{value['apiVersion']} {value['kind']}"
        planned_kinds = [" ".join(each) for each in _kinds()]
        raise DocumentError(
            f"{document.where('kind')}: {written} is not a kind that the controller "
            f"plans{did_you_mean(written, planned_kinds)}"
        )
    if not value["metadata"].get("name"):
        path = "metadata.name"
        raise DocumentError(
            f"{document.where(path)}: {path}: missing; the children are named after it"
        )
    written = group_version(document.value["apiVersion"])[1]
    parent = Parent(
        kind, value | {"metadata": {"namespace": namespace} | value["metadata"]}, written
    )
    try:
        parse(kind.type.model_fields["spec"].annotation, value.get("spec"))
        kind.type.model_validate(value)
    except ValidationError as error:
        paths = faults(kind.type, error)
    except FaultsError as error:
        paths = [(f"spec.{path}" if path else "spec", text) for path, text in error.faults]
    else:
        return parent
    named = [(parent.in_written_version(path), text) for path, text in paths]
    raise DocumentError(
        "\n".join(f"{document.where(path)}: {path}: {text}" for path, text in named)
    )


def has_planned_kind(document: Document) -> bool:
    """Whether a document belongs to an API group that has a planned kind; others are skipped."""
    require_object(document)
    return group_version(document.value["apiVersion"])[0] in {
        kind.resource.group for kind in planned_kinds()
    }


def plan_children(
    parent: Parent,
    now: datetime,
    settings: PlanSettings,
    observed: Callable[[Parent], Observed] | None = None,
) -> Iterator[Planned]:
    """Yield an object's planned children, each followed by its own.

    `observed` returns the existing objects.

    Raises DocumentError if a plan has a problem.
    """
    plan = parent.plan(Observed(settings=settings) if observed is None else observed(parent), now)
    for step in plan.steps:
        for write in step.writes:
            if isinstance(write, Apply | CreateOnly):
                child = Planned(parent, step, write)
                yield child
                kind = _kinds().get((child.resource.api_version, child.resource.kind))
                if kind is not None:
                    yield from plan_children(
                        Parent(kind, fill_crd_defaults(child.object)), now, settings, observed
                    )


def _kinds() -> dict[tuple[str, str], PlannedKind[Any]]:
    return {(kind.resource.api_version, kind.resource.kind): kind for kind in planned_kinds()}
