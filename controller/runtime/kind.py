"""A planned kind: its type, its planner, and the resources that the planner may read and write."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

from controller.runtime.plan import Apply, CreateOnly, Observed, Plan
from kube.index import IndexFunction
from kube.resource import JsonObject, Resource


class CustomObject(Protocol):
    """A custom resource's type, which parses stored objects and has a Definition."""

    definition: ClassVar[Any]

    @property
    def metadata(self) -> Any:
        """Return the object's metadata."""

    @classmethod
    def model_validate(cls, object: Any, /) -> Self:
        """Parse a stored object."""


T = TypeVar("T", bound=CustomObject)


KeptFields = Callable[[JsonObject], JsonObject] | None


@dataclass(frozen=True, slots=True)
class Reads:
    """A resource that a planner reads besides the children, and the indexes to find its objects.

    A change enqueues the objects of the kind in the same namespace that share a value with it in an
    index of the same name, or all of them without a common index; a change of a cluster-scoped
    object, in every namespace. With a label selector `labels` (equality and existence only), the
    cache has only the selected objects; children of that resource must have these labels.

    The cache has only objects with a value in an index. Of those that are no children it keeps what
    `fields` returns (default: everything), and name, namespace, uid and versions. That must be
    enough for the indexes, too: with it, other people's large objects cost little memory.
    """

    resource: Resource
    indexes: Mapping[str, IndexFunction] = field(default_factory=dict)
    labels: str | None = None
    fields: KeptFields = None


class Counts(NamedTuple):
    """A counter `name` of changes of the status field `field`.

    `about` is its help text.
    """

    name: str
    field: str
    about: str


class PlannedKind(Generic[T]):
    """A kind of object, and the pure function that plans what should exist for each."""

    def __init__(
        self,
        type: type[T],
        *,
        plan: Callable[[T, Observed, datetime], Plan],
        owns: Sequence[Resource] = (),
        creates_only: Sequence[Resource] = (),
        reads: Sequence[Resource | Reads] = (),
        patches: Sequence[Resource] = (),
        deletes: Sequence[Resource] = (),
        optional: Sequence[Resource] = (),
        indexes: Mapping[str, IndexFunction] | None = None,
        finalizer: str | None = None,
        counts: Counts | None = None,
        binds: Sequence[str] = (),
        escalates: Sequence[str] = (),
    ) -> None:
        """Take the kind's type, its planner, and the resources that it may read and write.

        It may apply the resources that it `owns`, and create those that it `creates_only`. Of these
        and of those that it `reads`, it may patch and delete the ones in `patches` and `deletes`.
        The API server may lack the `optional` ones, until their CRDs are installed. The planner may
        refer to the ClusterRoles that it `binds` in RoleBindings and ClusterRoleBindings, and give
        the Roles and ClusterRoles with a name in `escalates` rights that the controller does not
        have.
        """
        definition = type.definition
        self.type = type
        self.resource: Resource = definition.resource
        self.name = self.resource.kind.lower()
        """The prefix of its metrics and log fields."""
        self._plan = plan
        self.owns = (*owns, *creates_only)
        self._owned = {(each.api_version, each.kind): each for each in self.owns}
        self.creates_only = tuple(creates_only)
        selected = [each if isinstance(each, Reads) else Reads(each) for each in reads]
        self.reads = {each.resource: each for each in selected}
        self.patches = tuple(patches)
        self.deletes = tuple(deletes)
        self.optional = tuple(optional)
        if unknown := {*self.patches, *self.deletes, *self.optional} - {*self.owns, *self.reads}:
            names = ", ".join(sorted(each.plural for each in unknown))
            raise ValueError(f"{self.resource.kind} neither owns nor reads {names}")
        self.indexes = dict(indexes or {})
        self.finalizer = finalizer
        self.counts = counts
        self.binds = tuple(binds)
        self.escalates = tuple(escalates)
        self.shows_phase = any(column.path == ".status.phase" for column in definition.columns)
        """Whether a column shows a phase; then an object that cannot be planned gets one too."""

    def parse(self, object: JsonObject) -> T:
        """Return the typed object of a stored one, without its status if that is malformed."""
        try:
            return self.type.model_validate(object)
        except ValueError:
            without_status = {key: value for key, value in object.items() if key != "status"}
            return self.type.model_validate(without_status)

    def plan(self, object: T, observed: Observed, now: datetime) -> Plan:
        """Return the plan of an object.

        Raises ValueError for a child in another namespace than its namespaced parent: owner
        references cannot cross namespaces.
        """
        plan = self._plan(object, observed, now)
        for write in (write for step in plan.steps for write in step.writes):
            if isinstance(write, Apply | CreateOnly):
                self._check_namespace(object, write.object)
        return plan

    def _check_namespace(self, parent: T, child: JsonObject) -> None:
        named = child["metadata"].get("namespace")
        what = f"{child['kind']} {child['metadata']['name']}"
        if not self.resource.namespaced:
            if not named and self.owned_resource(child).namespaced:
                raise ValueError(f"{what}: metadata.namespace: must be set")
            return
        metadata = parent.metadata
        own = metadata.get("namespace") if isinstance(metadata, dict) else metadata.namespace
        if named and own and named != own:
            raise ValueError(
                f"{what}: metadata.namespace: {named}; the children of a {self.resource.kind} are "
                f"in its namespace, {own}. Leave it out"
            )

    def owned_resource(self, object: JsonObject) -> Resource:
        """Return the resource of a child; ValueError if `owns` does not declare it."""
        if resource := self._owned.get((object["apiVersion"], object["kind"])):
            return resource
        raise ValueError(
            f"{self.resource.kind} does not declare that it owns {object['apiVersion']} "
            f"{object['kind']}"
        )

    def index_name(self, index: str) -> str:
        """Return the name of one of the kind's indexes in a cache, which other kinds use too."""
        return f"{self.name}/{index}"
