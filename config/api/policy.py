"""Policies and exceptions (gatewright.io/v1alpha1): the policies in force, their scope, actions and exemptions."""

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field, StringConstraints
from pydantic.config import JsonDict

from config.api.definition import AGE, Column, Definition
from config.api.meta import ApiModel, CustomResource, Status
from config.api.rules import MatchCondition, Mutation, Validation, Variable

GROUP, VERSION = "gatewright.io", "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
OPEN: JsonDict = {"x-kubernetes-preserve-unknown-fields": True}

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
        None, description="labels of the object itself; the object's author can set them"
    )
    pod_selector: LabelSelector | None = Field(
        None, description="labels of the Pod, or of the pod template of a workload; the object's author can set them"
    )


class Exclude(ApiModel):
    """Whose requests are never matched."""

    users: list[str] = Field([], description="user names; `*` and `?` are globs")
    groups: list[str] = Field([], description="groups; `*` and `?` are globs")
    service_accounts: list[str] = Field([], description="service accounts as namespace/name; `*` and `?` are globs")


class Match(ApiModel):
    """Where a policy applies; without any clause, everywhere."""

    any: list[MatchClause] = Field([], description="the request must be matched by at least one of these")
    exclude: Exclude = Field(Exclude.model_construct(), description="whose requests are never matched")


class AdmissionPolicySpec(ApiModel):
    """What a policy object says: a built-in policy by its name, or rules of its own in CEL."""

    policy: str | None = Field(None, description="name of a built-in policy, as `gatewright explain` lists it")
    params: dict[str, Any] = Field(
        {},
        description="parameters of the policy, defaults left out; for rules in CEL the value of `params`",
        json_schema_extra=OPEN,
    )
    validations: list[Validation] = Field([], max_length=100, description="rules in CEL that must hold")
    mutations: list[Mutation] = Field([], max_length=100, description="changes in CEL, each on top of the one before")
    variables: list[Variable] = Field([], max_length=100, description="named expressions that rules can read")
    match_conditions: list[MatchCondition] = Field(
        [], max_length=64, description="CEL expressions that must all hold for the policy to apply"
    )
    match: Match = Field(Match.model_construct(), description="where the policy applies; everywhere by default")
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


class PolicyStatus(Status):
    """The status of a policy object; the numbers are those of the last audit."""

    actions: str | None = Field(None, description="The actions of the spec, as kubectl lists them: `Warn, Audit`.")
    violations: int | None = Field(None, description="Violations that the last audit found.")
    would_deny: int | None = Field(None, description="Objects with a violation: they would be denied if created now.")
    audited_objects: int | None = Field(None, description="Objects that the last audit judged, by all policies.")


POLICY_COLUMNS = (
    Column("Policy", ".spec.policy", description="The policy that is in force."),
    Column("Actions", ".status.actions", description="What a violation leads to."),
    Column("Ready", '.status.conditions[?(@.type=="Ready")].status', description="Whether it is in force."),
    Column("Violations", ".status.violations", "integer", description="Violations that the last audit found."),
    AGE,
    Column("Message", '.status.conditions[?(@.type=="Ready")].message', description="Why not.", wide=True),
)


class ClusterAdmissionPolicy(CustomResource):
    """A policy in force for the whole cluster, or for what its `match` says."""

    definition = Definition(
        group=GROUP,
        version=VERSION,
        kind="ClusterAdmissionPolicy",
        plural="clusteradmissionpolicies",
        short_names=("cap",),
        columns=POLICY_COLUMNS,
        categories=("gatewright",),
        namespaced=False,
    )

    spec: AdmissionPolicySpec = Field(description="What is in force.")
    status: PolicyStatus = Field(default_factory=PolicyStatus, description="What came of it.")


class AdmissionPolicy(CustomResource):
    """A tenant's policy: in force in its own namespace, where it can only add restrictions."""

    definition = Definition(
        group=GROUP,
        version=VERSION,
        kind="AdmissionPolicy",
        plural="admissionpolicies",
        short_names=("ap",),
        columns=POLICY_COLUMNS,
    )

    spec: AdmissionPolicySpec = Field(description="What is in force.")
    status: PolicyStatus = Field(default_factory=PolicyStatus, description="What came of it.")


class ExceptionEntry(ApiModel):
    """What is excepted from one policy object; all that is set here must hold."""

    policy: str = Field(description="name of the policy object")
    kinds: list[str] | None = Field(None, min_length=1, description="kinds, such as Deployment")
    names: list[str] | None = Field(None, min_length=1, description="names of objects; `*` and `?` are globs")
    namespaces: list[str] | None = Field(None, min_length=1, description="names of namespaces; `*` and `?` are globs")
    containers: list[str] | None = Field(
        None, min_length=1, description="names of containers that alone are excepted; `*` and `?` are globs"
    )
    images: list[str] | None = Field(
        None,
        min_length=1,
        description="images whose containers alone are excepted, as written or in full (docker.io/library/redis:7); "
        "`*` and `?` are globs",
    )
    params: dict[str, Any] | None = Field(
        None,
        description="judge with these parameters over the policy's own, instead of not at all",
        json_schema_extra=OPEN,
    )


class PolicyExceptionSpec(ApiModel):
    """What an exception says."""

    reason: str = Field(min_length=1, description="why")
    ticket: str | None = Field(None, description="where it was agreed on")
    expires: Annotated[AwareDatetime, Field(strict=False)] = Field(
        description="when it ends, such as 2027-01-31T00:00:00Z; from then on it is as if it were not there"
    )
    exceptions: list[ExceptionEntry] = Field(min_length=1, description="what is excepted")


class PolicyException(CustomResource):
    """An exception from policies, with a reason and an end.

    In the namespace that Gatewright is installed in it is one from cluster policies; elsewhere only from the
    AdmissionPolicies of its own namespace.
    """

    definition = Definition(
        group=GROUP,
        version=VERSION,
        kind="PolicyException",
        plural="policyexceptions",
        short_names=("polex",),
        columns=(
            Column("Expires", ".spec.expires", description="When it ends."),
            Column("Reason", ".spec.reason", description="Why it is there."),
            Column("Ready", '.status.conditions[?(@.type=="Ready")].status', description="Whether it is in force."),
            AGE,
        ),
    )

    spec: PolicyExceptionSpec = Field(description="What is excepted, why and until when.")
    status: Status = Field(default_factory=Status, description="What came of it.")


class PolicyMetadata(ApiModel):
    """The metadata that a policy set is about; the rest is the API server's."""

    name: Name = Field(description="name of the object; messages show it")
    namespace: Name | None = Field(None, description="namespace, of a tenant's policy or an exception")
    labels: dict[str, str] = Field({}, description="labels")
    annotations: dict[str, str] = Field({}, description="annotations")


class PolicyDocument(ApiModel):
    """What every object of a policy set has, whatever its kind."""

    api_version: Literal["gatewright.io/v1alpha1"] = Field(description="always gatewright.io/v1alpha1")
    kind: Literal["ClusterAdmissionPolicy", "AdmissionPolicy", "PolicyException"] = Field(description="what it is")
    metadata: PolicyMetadata = Field(description="its name")
    spec: dict[str, Any] = Field(description="what it says")
