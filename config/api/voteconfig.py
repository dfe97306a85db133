"""VoteConfig: a question and its possible answers, rendered into a ConfigMap for a vote app.

In two versions. v1 is stored and planned; `config/converters/voteconfig.py` turns one into the other. Neither loses
what the other wrote, even while no webhook converts and the API server only changes the `apiVersion`: v1alpha1 keeps
fields that it does not know, and v1 still reads the question where v1alpha1 has it.
"""

from typing import Any

from pydantic import ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from config.api.appconfig import ConfigMapStatus
from config.api.definition import AGE, MESSAGE, Column, Definition
from config.api.meta import ApiModel, CustomResource

GROUP, KIND, PLURAL, SHORT_NAMES = "voting.schoolofdevops.com", "VoteConfig", "voteconfigs", ("vc",)
STATUS_COLUMNS = (
    Column("ConfigMap", ".status.configMapName", description="Name of the ConfigMap."),
    Column("Ready", '.status.conditions[?(@.type=="Ready")].status', description="Whether all of it is done."),
    Column("Updated", ".status.lastUpdated", "date", "When the data last changed."),
    AGE,
    MESSAGE,
)


class Option(ApiModel):
    """One answer to choose."""

    id: str | None = Field(None, description="Identifies the answer. Needed.")
    label: str | None = Field(None, description="What voters read; the id by default.")
    description: str | None = Field(None, description="More about it.")


class Poll(ApiModel):
    """What is asked."""

    question: str | None = Field(None, description="The question. Needed.")


class VoteConfigSpec(ApiModel):
    """The question and the answers to choose from."""

    poll: Poll | None = Field(None, description="What is asked.")
    options: list[Option] = Field([], description="Answers to choose from. At least one is needed.")
    question: str | None = Field(
        None,
        description="Where v1alpha1 has the question: read where spec.poll.question is absent, which only objects are "
        "that were written in v1alpha1 while no webhook converted. Write spec.poll.question.",
    )

    @property
    def asked(self) -> str | None:
        """The question, wherever it stands."""
        return self.poll.question if self.poll and self.poll.question else self.question


class VoteConfig(CustomResource):
    """A question and the answers to choose from: the controller makes the ConfigMap that a vote app reads."""

    definition = Definition(
        group=GROUP,
        version="v1",
        kind=KIND,
        plural=PLURAL,
        short_names=SHORT_NAMES,
        columns=(Column("Question", ".spec.poll.question", description="The question."), *STATUS_COLUMNS),
    )

    spec: VoteConfigSpec = Field(
        VoteConfigSpec.model_construct(), description="The question and the answers to choose from."
    )
    status: ConfigMapStatus = Field(default_factory=ConfigMapStatus, description="What was last observed.")

    @model_validator(mode="before")
    @classmethod
    def _goes_in_any_case(cls, value: Any) -> Any:
        """Read of an object that is being deleted nothing that could be wrong: nothing may hold it up."""
        deleting = isinstance(value, dict) and "deletionTimestamp" in value.get("metadata", {})
        return {key: item for key, item in value.items() if key != "spec"} if deleting else value


OPEN: JsonDict = {"x-kubernetes-preserve-unknown-fields": True}


class OptionV1Alpha1(ApiModel):
    """One answer to choose."""

    model_config = ConfigDict(json_schema_extra=OPEN)

    id: str | None = Field(None, description="Identifies the answer. Needed.")
    label: str | None = Field(None, description="What voters read; the id by default.")


class VoteConfigSpecV1Alpha1(ApiModel):
    """The question and the answers to choose from."""

    question: str | None = Field(None, description="The question. Needed.")
    options: list[OptionV1Alpha1] = Field(
        [],
        description="Answers to choose from. At least one is needed.",
    )


class VoteConfigV1Alpha1(CustomResource):
    """A question and the answers to choose from: the controller makes the ConfigMap that a vote app reads."""

    definition = Definition(
        group=GROUP,
        version="v1alpha1",
        kind=KIND,
        plural=PLURAL,
        short_names=SHORT_NAMES,
        storage=False,
        columns=(Column("Question", ".spec.question", description="The question."), *STATUS_COLUMNS),
    )

    spec: VoteConfigSpecV1Alpha1 = Field(
        VoteConfigSpecV1Alpha1(),
        description="The question and the answers to choose from.",
        json_schema_extra=OPEN,
    )
    status: ConfigMapStatus = Field(default_factory=ConfigMapStatus, description="What was last observed.")
