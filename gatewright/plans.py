"""Plan a manifest's children, grandchildren included, without a cluster or with existing objects."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from config.converters import ConversionError, as_written, stored
from config.defaulting import defaulted
from config.documents import Document, DocumentError
from config.faults import FaultsError, did_you_mean, faults, parse
from controller.reconcilers import planned_kinds
from controller.runtime.kind import PlannedKind
from controller.runtime.plan import Apply, CreateOnly, Object, Observed, Plan, Step
from kube.resource import Resource
from webhook.harness.objects import require_object

Settings = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parent:
    """An object that things are made of, as the API server would store it."""

    kind: PlannedKind[Any]
    object: Object
    written: str = ""  # the version of its manifest, where it has one: that is how its fields are called

    @property
    def title(self) -> str:
        """Kind and name."""
        return f"{self.kind.resource.kind} {self.object['metadata']['name']}"

    @property
    def namespace(self) -> str:
        """The place of the object, and its children."""
        return str(self.object["metadata"]["namespace"])

    def plan(self, observed: Observed, now: datetime) -> Plan:
        """Plan it, given what is there. DocumentError where its type refuses it, or the plan cannot be carried out."""
        try:
            plan = self.kind.plan(self.kind.type.model_validate(self.object), observed, now)
        except ValidationError as error:
            raise DocumentError(f"{self.title}: {self.told(str(FaultsError(faults(self.kind.type, error))))}") from None
        if plan.problem is not None:
            raise DocumentError(f"{self.title}: {self.told(plan.problem.message)}")
        return plan

    def told(self, text: str) -> str:
        """Return a message about it with the field names of its written version."""
        resource = self.kind.resource
        return as_written(text, resource.group, self.written, resource.kind)

    def with_object(self, object: Object) -> "Parent":
        """Return it with what policies set, where it is now."""
        return replace(self, object=object | {"metadata": {"namespace": self.namespace} | object["metadata"]})


@dataclass(frozen=True, slots=True)
class Planned:
    """One object of a plan."""

    parent: Parent
    step: Step
    write: Apply | CreateOnly

    @property
    def object(self) -> Object:
        """The object, in its parent's namespace."""
        placed = {"namespace": self.parent.namespace} if self.resource.namespaced else {}
        return self.write.object | {"metadata": self.write.object["metadata"] | placed}

    @property
    def resource(self) -> Resource:
        """Where it lives in the API."""
        return self.parent.kind.owned(self.write.object)

    @property
    def comment(self) -> str:
        """Its parent, the step that creates it, and the fields that are unknown before."""
        gates = " and ".join(self.step.depends_on)
        lines = [f"{self.parent.title}: step {self.step.name}{f', after {gates}' if gates else ''}"]
        if isinstance(self.write, CreateOnly):
            lines.append("created once, and left alone from then on")
            lines += [f"{path}: {random.length} random characters" for path, random in self.write.generate.items()]
        return "".join(f"# {line}\n" for line in lines)


def parent_of(document: Document, namespace: str) -> Parent:
    """Return what a document asks for; `namespace` is where it goes if it names none. DocumentError if it cannot be."""
    require_object(document)
    try:
        value = defaulted(stored(document.value))
    except ConversionError as error:
        raise DocumentError(f"{document.where()}: {error}") from None
    kind = _kinds().get((value["apiVersion"], value["kind"]))
    if kind is None:
        found = f"{value['apiVersion']} {value['kind']}"
        known = [" ".join(each) for each in _kinds()]
        raise DocumentError(f"{document.where('kind')}: {found} is not planned here{did_you_mean(found, known)}")
    if not value["metadata"].get("name"):
        path = "metadata.name"
        raise DocumentError(f"{document.where(path)}: {path}: missing; what is made is named after it")
    written = document.value["apiVersion"].rpartition("/")[2]
    parent = Parent(kind, value | {"metadata": {"namespace": namespace} | value["metadata"]}, written)
    try:
        parse(kind.type.model_fields["spec"].annotation, value.get("spec"))
        kind.type.model_validate(value)
    except ValidationError as error:
        paths = faults(kind.type, error)
    except FaultsError as error:
        paths = [(f"spec.{path}" if path else "spec", text) for path, text in error.faults]
    else:
        return parent
    named = [(parent.told(path), text) for path, text in paths]
    raise DocumentError("\n".join(f"{document.where(path)}: {path}: {text}" for path, text in named))


def is_ours(document: Document) -> bool:
    """Whether a document is of a group that has a planned kind: what else stands beside it is not planned."""
    require_object(document)
    return document.value["apiVersion"].rpartition("/")[0] in {kind.resource.group for kind in planned_kinds()}


def planned(
    parent: Parent, now: datetime, settings: Settings, observed: Callable[[Parent], Observed] | None = None
) -> Iterator[Planned]:
    """Yield an object's planned children, each followed by its own children; `observed` has the existing objects.

    DocumentError where a plan cannot be carried out.
    """
    plan = parent.plan(Observed(settings=settings) if observed is None else observed(parent), now)
    for step in plan.steps:
        for write in step.writes:
            if isinstance(write, Apply | CreateOnly):
                made = Planned(parent, step, write)
                yield made
                kind = _kinds().get((made.resource.api_version, made.resource.kind))
                if kind is not None:
                    yield from planned(Parent(kind, defaulted(made.object)), now, settings, observed)


def _kinds() -> dict[tuple[str, str], PlannedKind[Any]]:
    return {(kind.resource.api_version, kind.resource.kind): kind for kind in planned_kinds()}
