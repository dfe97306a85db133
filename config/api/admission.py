"""Kubernetes' own admission policies (admissionregistration.k8s.io/v1), limited to the fields that are evaluated."""

from typing import Literal

from pydantic import Field

from config.api.meta import ApiModel
from config.api.policy import FailurePolicy, LabelSelector
from config.api.rules import MatchCondition, Mutation, Validation, Variable

GROUP = "admissionregistration.k8s.io"


class ResourceRule(ApiModel):
    """Operations on resources; `*` stands for all of a kind."""

    operations: list[str] = Field(["*"], min_length=1, description="operations")
    api_groups: list[str] = Field(["*"], min_length=1, description="API groups")
    api_versions: list[str] = Field(["*"], min_length=1, description="versions of the API group")
    resources: list[str] = Field(["*"], min_length=1, description="resources, such as pods or deployments/scale")
    resource_names: list[str] = Field([], description="names of objects; all by default")
    scope: Literal["*", "Cluster", "Namespaced"] = Field("*", description="which objects")


class MatchResources(ApiModel):
    """What a policy or a binding is about: all parts that are set must hold."""

    resource_rules: list[ResourceRule] = Field([], description="one of these must match; none restrict nothing")
    exclude_resource_rules: list[ResourceRule] = Field([], description="none of these may match")
    match_policy: Literal["Exact", "Equivalent"] = Field("Equivalent", description="whether versions count")
    namespace_selector: LabelSelector | None = Field(None, description="labels of the namespace")
    object_selector: LabelSelector | None = Field(None, description="labels of the object")


class ParamKind(ApiModel):
    """The kind of the objects that `params` is."""

    api_version: str = Field(description="API version")
    kind: str = Field(description="kind")


class AuditAnnotation(ApiModel):
    """An annotation of the audit log; it is read and not evaluated."""

    key: str = Field(description="key")
    value_expression: str = Field(description="CEL expression")


class KubernetesPolicySpec(ApiModel):
    """The spec of a ValidatingAdmissionPolicy or a MutatingAdmissionPolicy."""

    param_kind: ParamKind | None = Field(None, description="kind of the parameters")
    match_constraints: MatchResources = Field(MatchResources.model_construct(), description="what it is about")
    match_conditions: list[MatchCondition] = Field([], description="conditions")
    variables: list[Variable] = Field([], description="variables")
    validations: list[Validation] = Field([], description="rules")
    mutations: list[Mutation] = Field([], description="changes")
    audit_annotations: list[AuditAnnotation] = Field([], description="annotations")
    failure_policy: FailurePolicy = Field("Fail", description="what an error leads to")
    reinvocation_policy: Literal["Never", "IfNeeded"] = Field("Never", description="no part in an evaluation here")


class ParamRef(ApiModel):
    """Which objects are the parameters."""

    name: str = Field("", description="name")
    namespace: str = Field("", description="namespace; that of the judged object by default")
    selector: LabelSelector | None = Field(None, description="labels of the parameters, instead of a name")
    parameter_not_found_action: Literal["Allow", "Deny"] = Field("Deny", description="what follows from none")


class BindingSpec(ApiModel):
    """The spec of a binding."""

    policy_name: str = Field(description="name of the policy")
    param_ref: ParamRef | None = Field(None, description="its parameters")
    match_resources: MatchResources = Field(MatchResources.model_construct(), description="where it is in force")
    validation_actions: list[Literal["Deny", "Warn", "Audit"]] = Field(["Deny"], description="what a violation does")
