"""The format of case files: what is asked, and the answer that is expected. An unknown field is an error."""

from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)  # the time of a case that sets none


Derivation = Literal["init", "ephemeral", "generateName", "update"]


class CaseType(BaseModel):
    """A part of a case file."""

    model_config = ConfigDict(frozen=True, strict=True)


class Expected(CaseType):
    """One expected violation: its whole message, or the policy that reports it."""

    path: str = Field(description="field the violation is about; of a `pod` case, below the pod's spec")
    message: str | None = Field(None, description="the whole message after the policy's name")
    policy: str | None = Field(None, description="name of the policy object")

    @model_validator(mode="after")
    def _is_told_apart(self) -> "Expected":
        if self.message is None and self.policy is None:
            raise ValueError("expected message or policy beside the path: any violation there would pass")
        return self


DECISIONS = ("denied", "malformed", "patched")  # of one object only one can come


class Expectation(CaseType):
    """What is expected; whatever else comes is a difference."""

    denied: list[Expected] | None = Field(None, min_length=1, description="denied with exactly these violations")
    malformed: list[Expected] | None = Field(
        None, min_length=1, description="denied, since the object is not what its kind says"
    )
    warned: list[Expected] | None = Field(None, min_length=1, description="exactly these warnings")
    audited: list[Expected] | None = Field(
        None, min_length=1, description="exactly these violations by policies whose only action is Audit"
    )
    patched: dict[str, Any] | None = Field(
        None, min_length=1, description="allowed; laid over the object, this is the result"
    )

    @model_validator(mode="after")
    def _can_come(self) -> "Expectation":
        if not self.model_fields_set:
            raise ValueError(f"expected at least one of {', '.join(type(self).model_fields)}")
        if len(decided := [name for name in DECISIONS if name in self.model_fields_set]) > 1:
            raise ValueError(f"expected one of {' and '.join(decided)}")
        return self


class Case(CaseType):
    """One thing asked, and the expected answer."""

    name: str = Field(min_length=1, description="what this case shows")
    object: dict[str, Any] = Field({}, description="what differs from the smallest valid object of its kind")
    old_object: dict[str, Any] | None = Field(None, description="the same for the object as it was; makes it an UPDATE")
    pod: dict[str, Any] | None = Field(
        None, description="what differs from the smallest pod spec, wherever a kind carries it"
    )
    old_pod: dict[str, Any] | None = Field(None, description="the same for the pod spec as it was; makes it an UPDATE")
    each: Literal["pods"] | list[str] | None = Field(
        None,
        min_length=1,
        description="kinds or subresources this case is tried as; `pods`: every kind with a pod spec",
    )
    also: list[Derivation] = Field(
        [],
        description="tried again, with the same answer expected: its containers as init or ephemeral containers, "
        "with a generateName, as an update of the smallest object",
    )
    operation: Literal["CREATE", "UPDATE", "DELETE"] | None = Field(
        None, description="CREATE, or UPDATE with old_object"
    )
    namespace: str = Field("default", description="namespace of the object")
    namespace_labels: dict[str, str] = Field({}, description="labels of that namespace")
    username: str = Field("kubernetes-admin", description="who asks")
    groups: list[str] = Field(["system:authenticated"], description="groups of who asks")
    looked_up: dict[str, Any] = Field({}, description="what was looked up in the cluster, by name")
    now: AwareDatetime = Field(EPOCH, strict=False, description="the time, for exceptions that expire")
    params: dict[str, Any] | None = Field(None, description="parameters of the policy in this case")
    expect: Literal["allowed", "not-matched"] | Expectation


class CaseFile(CaseType):
    """The cases of one policy, or of one policy set."""

    policy: str | None = Field(None, description="name of the policy that is tried")
    policies: str | None = Field(None, description="policy set that is tried instead: a file, from here")
    params: dict[str, Any] = Field({}, description="parameters of the policy where a case has none")
    cases: list[Case] = Field(min_length=1)

    @model_validator(mode="after")
    def _one_subject(self) -> "CaseFile":
        if (self.policy is None) == (self.policies is None):
            raise ValueError("expected either policy or policies")
        if self.policies is not None and (self.params or any(case.params for case in self.cases)):
            raise ValueError("params belong to the policy set when policies is given")
        return self
