"""VoteConfig: a question and its possible answers, rendered into a ConfigMap for a vote app.

Two versions exist. v1 is stored and planned; `config/converters/voteconfig.py` converts between
them. Neither loses data written in the other, even while no webhook converts and the API server
only changes the `apiVersion`: v1alpha1 keeps unknown fields, and v1 also reads the question at its
v1alpha1 path.
"""

from typing import Any

from pydantic import ConfigDict, Field, model_validator

from config.api.appconfig import ConfigMapStatus
from config.api.definition import AGE, MESSAGE, READY, Column, Definition
from config.api.meta import OPEN, ApiModel, CustomResource

GROUP, KIND, PLURAL, SHORT_NAMES = "voting.schoolofdevops.com", "VoteConfig", "voteconfigs", ("vc",)
STATUS_COLUMNS = (
    Column("ConfigMap", ".status.configMapName", description="Name of the ConfigMap."),
    Column(
        "Ready",
        READY,
        description="Whether the ConfigMap is up to date and its users are restarted.",
    ),
    Column("Updated", ".status.lastUpdated", "date", "When the data last changed."),
    AGE,
    MESSAGE,
)


class Option(ApiModel):
    """One answer option."""

    id: str | None = Field(None, description="Identifier of the answer. Required.")
    label: str | None = Field(None, description="Text that voters see; default: the id.")
    description: str | None = Field(None, description="Further details.")


class Poll(ApiModel):
    """The poll."""

    question: str | None = Field(None, description="The question. Required.")


class VoteConfigSpec(ApiModel):
    """The question and the answer options."""

    poll: Poll | None = Field(None, description="The poll.")
    options: list[Option] = Field([], description="Answer options. At least one is required.")
    question: str | None = Field(
        None,
        description="The question at its v1alpha1 path. Used if spec.poll.question is absent: in "
        "objects "
        "that were written in v1alpha1 while no webhook converted. Write spec.poll.question.",
    )

    @property
    def effective_question(self) -> str | None:
        """The question, from either path."""
        return self.poll.question if self.poll and self.poll.question else self.question


class VoteConfig(CustomResource):
    """A question and its options: the controller creates the ConfigMap that a vote app reads."""

    definition = Definition(
        group=GROUP,
        version="v1",
        kind=KIND,
        plural=PLURAL,
        short_names=SHORT_NAMES,
        columns=(
            Column("Question", ".spec.poll.question", description="The question."),
            *STATUS_COLUMNS,
        ),
    )

    spec: VoteConfigSpec = Field(
        VoteConfigSpec.model_construct(), description="The question and the answer options."
    )
    status: ConfigMapStatus = Field(
        default_factory=ConfigMapStatus, description="The observed state."
    )

    @model_validator(mode="before")
    @classmethod
    def _skip_spec_when_deleted(cls, value: Any) -> Any:
        """Skip the spec of an object that is being deleted: it must not block its deletion."""
        deleting = isinstance(value, dict) and "deletionTimestamp" in value.get("metadata", {})
        return {key: item for key, item in value.items() if key != "spec"} if deleting else value


class OptionV1Alpha1(ApiModel):
    """One answer option."""

    model_config = ConfigDict(json_schema_extra=OPEN)

    id: str | None = Field(None, description="Identifier of the answer. Required.")
    label: str | None = Field(None, description="Text that voters see; default: the id.")


class VoteConfigSpecV1Alpha1(ApiModel):
    """The question and the answer options."""

    question: str | None = Field(None, description="The question. Required.")
    options: list[OptionV1Alpha1] = Field(
        [],
        description="Answer options. At least one is required.",
    )


class VoteConfigV1Alpha1(CustomResource):
    """A question and its options: the controller creates the ConfigMap that a vote app reads."""

    definition = Definition(
        group=GROUP,
        version="v1alpha1",
        kind=KIND,
        plural=PLURAL,
        short_names=SHORT_NAMES,
        storage=False,
        columns=(
            Column("Question", ".spec.question", description="The question."),
            *STATUS_COLUMNS,
        ),
    )

    spec: VoteConfigSpecV1Alpha1 = Field(
        VoteConfigSpecV1Alpha1(),
        description="The question and the answer options.",
        json_schema_extra=OPEN,
    )
    status: ConfigMapStatus = Field(
        default_factory=ConfigMapStatus, description="The observed state."
    )
