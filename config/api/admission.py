"""Kubernetes' own admission policies, limited to the fields that are evaluated."""

from typing import Literal

from pydantic import Field

from config.api.match import LabelSelector
from config.api.meta import ApiModel
from config.api.policy import FailurePolicy
from config.api.rules import MatchCondition, Mutation, Validation, Variable

GROUP = "admissionregistration.k8s.io"


class ResourceRule(ApiModel):
    """Operations on resources; `*` stands for all."""

    operations: list[str] = Field(["*"], min_length=1, description="operations")
    api_groups: list[str] = Field(["*"], min_length=1, description="API groups")
    api_versions: list[str] = Field(["*"], min_length=1, description="versions of the API group")
    resources: list[str] = Field(
        ["*"], min_length=1, description="resources, such as pods or deployments/scale"
    )
    resource_names: list[str] = Field([], description="names of objects; all by default")
    scope: Literal["*", "Cluster", "Namespaced"] = Field("*", description="scope of the objects")


class MatchResources(ApiModel):
    """The requests that a policy or a binding applies to; every part that is set must match."""

    resource_rules: list[ResourceRule] = Field(
        [], description="one of these must match; an empty list matches everything"
    )
    exclude_resource_rules: list[ResourceRule] = Field([], description="none of these may match")
    match_policy: Literal["Exact", "Equivalent"] = Field(
        "Equivalent", description="whether other versions of a resource match"
    )
    namespace_selector: LabelSelector | None = Field(None, description="labels of the namespace")
    object_selector: LabelSelector | None = Field(None, description="labels of the object")


class ParamKind(ApiModel):
    """The kind of the parameter objects, `params`."""

    api_version: str = Field(description="API version")
    kind: str = Field(description="kind")


class AuditAnnotation(ApiModel):
    """An annotation of the audit log."""

    key: str = Field(description="key")
    value_expression: str = Field(description="CEL expression for its value, a string or null")


class KubernetesPolicySpec(ApiModel):
    """The spec of a ValidatingAdmissionPolicy or a MutatingAdmissionPolicy."""

    param_kind: ParamKind | None = Field(None, description="kind of the parameters")
    match_constraints: MatchResources = Field(
        MatchResources.model_construct(), description="requests that the policy applies to"
    )
    match_conditions: list[MatchCondition] = Field([], description="conditions")
    variables: list[Variable] = Field([], description="variables")
    validations: list[Validation] = Field([], description="rules")
    mutations: list[Mutation] = Field([], description="changes")
    audit_annotations: list[AuditAnnotation] = Field([], description="annotations")
    failure_policy: FailurePolicy = Field("Fail", description="what happens after an error")
    reinvocation_policy: Literal["Never", "IfNeeded"] = Field(
        "Never", description="accepted and ignored"
    )


class ParamRef(ApiModel):
    """The parameter objects."""

    name: str = Field("", description="name")
    namespace: str = Field(
        "", description="namespace of the parameters; default: that of the judged object"
    )
    selector: LabelSelector | None = Field(
        None, description="labels of the parameters, instead of a name"
    )
    parameter_not_found_action: Literal["Allow", "Deny"] = Field(
        "Deny", description="what happens if there are none"
    )


class BindingSpec(ApiModel):
    """The spec of a binding."""

    policy_name: str = Field(description="name of the policy")
    param_ref: ParamRef | None = Field(None, description="parameters of the policy")
    match_resources: MatchResources = Field(
        MatchResources.model_construct(), description="requests that the binding applies to"
    )
    validation_actions: list[Literal["Deny", "Warn", "Audit"]] = Field(
        ["Deny"], description="what happens on a violation"
    )
