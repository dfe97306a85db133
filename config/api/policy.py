"""ClusterAdmissionPolicy (gatewright.io/v1alpha1): which policy is in force, where, and what it does."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from config.api.meta import ApiModel

GROUP = "gatewright.io"
API_VERSION = f"{GROUP}/v1alpha1"

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
Action = Literal["Deny", "Warn", "Audit"]
FailurePolicy = Literal["Fail", "Ignore"]
Name = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", max_length=253)
]


class LabelSelectorRequirement(ApiModel):
    """One expression of a label selector (meta/v1)."""

    key: str = Field(description="label the expression is about")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = Field(description="how its value is compared")
    values: list[str] = Field([], description="values for In and NotIn")


class LabelSelector(ApiModel):
    """A label selector (meta/v1): all of its parts must hold; an empty one selects everything."""

    match_labels: dict[str, str] = Field({}, description="labels that must have exactly these values")
    match_expressions: list[LabelSelectorRequirement] = Field([], description="expressions that must all hold")


class MatchClause(ApiModel):
    """One way for a request to be matched: all that is set here must hold."""

    kinds: list[str] | None = Field(None, min_length=1, description="kinds, such as Deployment (its /scale included)")
    operations: list[Operation] | None = Field(None, min_length=1, description="operations: CREATE, UPDATE …")
    subresources: list[str] | None = Field(None, min_length=1, description='subresources; "" is the whole object')
    names: list[str] | None = Field(None, min_length=1, description="names of objects; `*` and `?` are globs")
    namespaces: list[str] | None = Field(None, min_length=1, description="names of namespaces; `*` and `?` are globs")
    namespace_selector: LabelSelector | None = Field(None, description="labels of the object's namespace")
    object_selector: LabelSelector | None = Field(
        None, description="labels of the object itself; whoever writes the object can set them"
    )


class Exclude(ApiModel):
    """Whose requests are never matched."""

    users: list[str] = Field([], description="user names; `*` and `?` are globs")
    groups: list[str] = Field([], description="groups; `*` and `?` are globs")
    service_accounts: list[str] = Field([], description="service accounts as namespace/name; `*` and `?` are globs")


class Match(ApiModel):
    """Where a policy applies; without any clause, everywhere."""

    any: list[MatchClause] = Field([], description="the request must be matched by at least one of these")
    exclude: Exclude = Field(Exclude(), description="whose requests are never matched")


class ClusterAdmissionPolicySpec(ApiModel):
    """What a ClusterAdmissionPolicy says."""

    policy: str = Field(description="name of the policy, as `gatewright explain` lists it")
    params: dict[str, Any] = Field({}, description="parameters of the policy; what is left out has a default")
    match: Match = Field(Match(), description="where the policy applies; everywhere by default")
    validation_actions: list[Action] = Field(
        ["Deny"], min_length=1, description="what a violation leads to: Deny, Warn, Audit, in any combination"
    )
    failure_policy: FailurePolicy = Field("Fail", description="what happens when the policy itself fails")
    allow_existing_violations: bool = Field(
        True, description="let an update pass, with a warning, that makes no violation worse than it was"
    )
    severity: Literal["low", "medium", "high", "critical"] | None = Field(
        None, description="how bad a violation is; the policy's own by default"
    )
    category: str | None = Field(None, description="what the policy is about; the policy's own by default")


class PolicyMetadata(ApiModel):
    """The part of an object's metadata that a policy set is about."""

    name: Name = Field(description="name of the object; messages show it")


class ClusterAdmissionPolicy(ApiModel):
    """A policy in force for the whole cluster, or for what its `match` says."""

    api_version: Literal["gatewright.io/v1alpha1"] = Field(description="always gatewright.io/v1alpha1")
    kind: Literal["ClusterAdmissionPolicy"] = Field(description="always ClusterAdmissionPolicy")
    metadata: PolicyMetadata
    spec: ClusterAdmissionPolicySpec
