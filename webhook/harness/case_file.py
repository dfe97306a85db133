"""The format of case files: requests and their expected answers. Unknown fields are errors."""

import re
from datetime import UTC, datetime
from typing import Any, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator, model_validator

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)  # the default time of a case
NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")

Derivation = Literal["init", "ephemeral", "generateName", "update"]


class CaseType(BaseModel):
    """A part of a case file."""

    model_config = ConfigDict(frozen=True, strict=True)

    @model_validator(mode="after")
    def _has_no_empty_field(self) -> Self:
        if empty := sorted(name for name in self.model_fields_set if getattr(self, name) is None):
            raise ValueError(f"{', '.join(empty)}: null; give it a value, or leave it out")
        return self


class Expected(CaseType):
    """One expected violation, identified by its whole message or by the policy that reports it."""

    path: str = Field(
        description="path of the violation; in a `pod` case, relative to the pod's spec"
    )
    message: str | None = Field(None, description="whole message, without the policy's name")
    policy: str | None = Field(None, description="name of the policy object")

    @model_validator(mode="after")
    def _is_specific(self) -> "Expected":
        if self.message is None and self.policy is None:
            raise ValueError(
                "expected message or policy beside the path: any violation there would pass"
            )
        if self.message is None and not self.path:
            raise ValueError(
                "expected message where the path is empty: any violation of the policy would pass"
            )
        return self


DECISIONS = ("denied", "malformed", "patched")  # mutually exclusive


class ExpectedAnswer(CaseType):
    """The expected answer; any other part of the actual answer is a difference."""

    denied: list[Expected] = Field(
        [], min_length=1, description="denied with exactly these violations"
    )
    malformed: list[Expected] = Field(
        [], min_length=1, description="denied with code 400, because the object is malformed"
    )
    warned: list[Expected] = Field([], min_length=1, description="exactly these warnings")
    audited: list[Expected] = Field(
        [],
        min_length=1,
        description="exactly these violations by policies whose only action is Audit",
    )
    patched: dict[str, Any] = Field(
        {},
        min_length=1,
        description="allowed; the patched object equals the object merged with these fields",
    )

    @model_validator(mode="after")
    def _is_consistent(self) -> "ExpectedAnswer":
        if not self.model_fields_set:
            raise ValueError(f"expected at least one of {', '.join(type(self).model_fields)}")
        if len(decided := [name for name in DECISIONS if name in self.model_fields_set]) > 1:
            raise ValueError(f"expected one of {' and '.join(decided)}")
        return self


class Case(CaseType):
    """One request and its expected answer."""

    name: str = Field(min_length=1, description="name of the case")
    object: dict[str, Any] = Field(
        {}, description="fields that differ from the smallest valid object of the kind"
    )
    old_object: dict[str, Any] | None = Field(
        None, description="the same for the old object; makes the request an UPDATE"
    )
    pod: dict[str, Any] | None = Field(
        None, description="fields that differ from the smallest pod spec, in any kind that has one"
    )
    old_pod: dict[str, Any] | None = Field(
        None, description="the same for the old pod spec; makes the request an UPDATE"
    )
    each: Literal["pods"] | list[str] | None = Field(
        None,
        min_length=1,
        description="kinds or subresources to run the case with; "
        "`pods`: every kind with a pod spec",
    )
    also: list[Derivation] = Field(
        [],
        min_length=1,
        description="variants that must get the same answer: containers as init or ephemeral "
        "containers, a generateName, an update of the smallest object",
    )
    operation: Literal["CREATE", "UPDATE", "DELETE"] | None = Field(
        None, description="CREATE, or UPDATE with old_object"
    )
    namespace: str | None = Field(
        None,
        description="namespace of the request; by default the one in the object's metadata, "
        "or default",
    )
    namespace_labels: dict[str, str] = Field({}, description="labels of that namespace")
    username: str = Field("kubernetes-admin", description="user of the request")
    groups: list[str] = Field(["system:authenticated"], description="groups of the user")
    looked_up: dict[str, Any] = Field({}, description="results of look-ups in the cluster, by name")
    now: AwareDatetime = Field(EPOCH, description="current time, for exceptions that expire")
    params: dict[str, Any] | None = Field(None, description="parameters of the policy in this case")
    expect: Literal["allowed", "not-matched"] | ExpectedAnswer

    @field_validator("expect", mode="before")
    @classmethod
    def _says_what(cls, expect: Any) -> Any:
        if isinstance(expect, str) and expect in ExpectedAnswer.model_fields:
            example = (
                "{spec: {}}"
                if expect == "patched"
                else "[{policy: replica-limits, path: spec.replicas}]"
            )
            raise ValueError(f"does not say what is expected; write {{{expect}: {example}}}")
        return expect

    @field_validator("namespace")
    @classmethod
    def _is_a_namespace(cls, name: str | None) -> str | None:
        if name is not None and not NAMESPACE.fullmatch(name):
            raise ValueError("expected a namespace: lower-case letters, digits and -")
        return name


class CaseFile(CaseType):
    """The cases of one policy or one policy set."""

    policy: str | None = Field(None, description="name of the tested policy")
    policies: str | None = Field(
        None, description="tested policy set instead: a preset, or a file relative to this one"
    )
    params: dict[str, Any] = Field({}, description="default parameters of the policy")
    cases: list[Case] = Field(min_length=1)

    @model_validator(mode="after")
    def _one_subject(self) -> "CaseFile":
        if (self.policy is None) == (self.policies is None):
            raise ValueError("expected either policy or policies")
        if self.policies is not None and (self.params or any(case.params for case in self.cases)):
            raise ValueError("params belong to the policy set when policies is given")
        if all(case.expect == "not-matched" for case in self.cases):
            raise ValueError(
                "every case expects not-matched, so nothing is tested; add a case that is judged"
            )
        return self


class CarriedCases(CaseType):
    """The cases in the spec of a policy object."""

    cases: list[Case] = Field(min_length=1)
