"""Fields common to all custom resources: metadata, conditions, parsing, serialization."""

from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, model_validator
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict

from config.api.definition import Definition


def _rfc3339(moment: datetime) -> str:
    """Format a time as the API server does: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


Rfc3339Time = Annotated[datetime, Field(strict=False), PlainSerializer(_rfc3339, when_used="json")]
# Parts of schemas: any field is allowed; an integer or text; a list whose items have a key.
OPEN: JsonDict = {"x-kubernetes-preserve-unknown-fields": True}
INT_OR_STRING: JsonDict = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
Int32 = Annotated[int, Field(json_schema_extra={"format": "int32"})]
Int64 = Annotated[int, Field(json_schema_extra={"format": "int64"})]


def keyed_by(field: str) -> JsonDict:
    """Return the part of a list's schema that names the key field of its items."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [field]}


class ApiModel(BaseModel):
    """A value of the API: camelCase names.

    Unknown keys are ignored (objects may be newer); null means absent.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        frozen=True,
        strict=True,
        extra="ignore",
        # Validators are built when the first object of the kind is read: most kinds have none when
        # a process starts. So a default that is itself a model is created by model_construct.
        defer_build=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, value: Any) -> Any:
        if isinstance(value, dict) and None in value.values():
            return {key: item for key, item in value.items() if item is not None}
        return value

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return the value itself: it is immutable, so defaults need no copies."""
        return self

    def to_api(self) -> dict[str, Any]:
        """Return the value as JSON for the API server; unset fields are omitted."""
        # The call that model_dump makes, without its 15 arguments: a third faster for small models.
        api: dict[str, Any] = self.__pydantic_serializer__.to_python(
            self, mode="json", by_alias=True, exclude_none=True
        )
        return api


class ObjectMeta(ApiModel):
    """The fields of core ObjectMeta that Gatewright reads."""

    name: str = Field("", description="Name, unique in its namespace.")
    namespace: str = Field("", description="Namespace; empty for cluster-scoped objects.")
    uid: str = Field("", description="Unique identity; empty before the object is stored.")
    resource_version: str = Field("", description="Version of the stored object.")
    generation: int = Field(0, description="Counts the changes of the spec.")
    creation_timestamp: Rfc3339Time | None = Field(None, description="When the object was stored.")
    deletion_timestamp: Rfc3339Time | None = Field(None, description="When deletion was requested.")
    labels: dict[str, str] = Field(default_factory=dict, description="Labels, used by selectors.")
    annotations: dict[str, str] = Field(
        default_factory=dict, description="Annotations, used by tools."
    )
    finalizers: list[str] = Field(
        default_factory=list,
        description="Clean-up tasks that must finish before the object is removed.",
    )


class Condition(ApiModel):
    """A condition of the observed state."""

    type: str = Field(
        description="Type of the condition, in CamelCase.",
        max_length=316,
        pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
    )
    status: Literal["True", "False", "Unknown"] = Field(
        description="Whether the condition is true."
    )
    observed_generation: Int64 | None = Field(
        None, ge=0, description="The generation the condition was set for."
    )
    last_transition_time: Rfc3339Time = Field(description="When the status last changed.")
    reason: str = Field(
        description="The reason of the last change, one word in CamelCase.",
        min_length=1,
        max_length=1024,
        pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
    )
    message: str = Field(description="The details, for people.", max_length=32768)

    @classmethod
    def of(cls, type: str, holds: bool, reason: str, now: datetime, message: str = "") -> Self:
        """Return a condition that holds or not; the runtime keeps its time while that stays."""
        return cls(
            type=type,
            status="True" if holds else "False",
            reason=reason,
            message=message,
            last_transition_time=now,
        )


class Status(ApiModel):
    """The status fields that every kind has; the runtime sets them."""

    observed_generation: Int64 | None = Field(
        None, description="The generation that this status describes."
    )
    conditions: list[Condition] | None = Field(
        None,
        description="Conditions; Ready is True when the actual state matches the spec.",
        json_schema_extra=keyed_by("type"),
    )


class CustomResource(ApiModel):
    """An object of one of Gatewright's kinds.

    Each kind adds its `definition`, `spec` and `status`.
    """

    definition: ClassVar[Definition]
    metadata: ObjectMeta = Field(
        default_factory=ObjectMeta, description="Standard object metadata."
    )

    @property
    def name(self) -> str:
        """Name of the object."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """Namespace of the object."""
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        """Identity of the stored object."""
        return self.metadata.uid

    @property
    def generation(self) -> int:
        """Counts the changes of the spec."""
        return self.metadata.generation
