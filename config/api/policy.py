"""Policy objects (gatewright.io/v1alpha1): a policy or rules, their scope and their actions."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, WithJsonSchema

from config.api.definition import AGE, READY, READY_MESSAGE, Column, Definition
from config.api.match import MatchSpec
from config.api.meta import OPEN, ApiModel, CustomResource, Status
from config.api.rules import MatchCondition, Mutation, Validation, Variable

GROUP, VERSION = "gatewright.io", "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
UNKNOWN_FIELDS = f"{GROUP}/unknown-fields"
"""The annotation that admits CEL rules about fields that no known version of a kind has."""

OpenObject = Annotated[dict[str, Any], WithJsonSchema({"type": "object", **OPEN})]
Action = Literal["Deny", "Warn", "Audit"]
FailurePolicy = Literal["Fail", "Ignore"]
PolicyName = Annotated[
    str,
    StringConstraints(
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", max_length=253
    ),
]


class AdmissionPolicySpec(ApiModel):
    """A built-in policy by its name, or rules in CEL, with parameters and a scope."""

    policy: str | None = Field(
        None, description="name of a built-in policy; `gatewright policies` lists them"
    )
    params: dict[str, Any] = Field(
        {},
        description="parameters that differ from the policy's defaults; for rules in CEL the "
        "value of `params`",
        json_schema_extra=OPEN,
    )
    validations: list[Validation] = Field(
        [], max_length=100, description="rules in CEL that must hold"
    )
    mutations: list[Mutation] = Field(
        [], max_length=100, description="changes in CEL, applied in order"
    )
    variables: list[Variable] = Field(
        [], max_length=100, description="named expressions that rules can read"
    )
    match_conditions: list[MatchCondition] = Field(
        [], max_length=64, description="CEL expressions that must all hold for the policy to apply"
    )
    match: MatchSpec = Field(
        MatchSpec.model_construct(), description="where the policy applies; everywhere by default"
    )
    validation_actions: list[Action] = Field(
        ["Deny"],
        min_length=1,
        description="actions on a violation: Deny, Warn, Audit, in any combination",
    )
    failure_policy: FailurePolicy = Field(
        "Fail", description="what happens when the policy itself fails"
    )
    allow_existing_violations: bool = Field(
        True, description="allow an update, with a warning, if it makes no existing violation worse"
    )
    severity: Literal["low", "medium", "high", "critical"] | None = Field(
        None, description="severity of violations; default: the policy's own"
    )
    category: str | None = Field(
        None, description="category for reports; default: the policy's own"
    )
    cases: list[OpenObject] | None = Field(
        None,
        max_length=100,
        description="cases, as in a file of `gatewright test`, that must pass before a "
        "ClusterAdmissionPolicy goes in force",
    )


class ExpressionWarning(ApiModel):
    """A type error of a CEL rule, as in the status of a ValidatingAdmissionPolicy."""

    field_ref: str = Field(description="The path of the expression in the policy object.")
    warning: str = Field(description="The error, and the kinds whose objects it is about.")


class TypeChecking(ApiModel):
    """The result of type-checking the CEL rules against the kinds that they match."""

    expression_warnings: list[ExpressionWarning] = Field(
        [], description="The type errors of the expressions."
    )


class PolicyStatus(Status):
    """The status of a policy object; the numbers are those of the last audit."""

    actions: str | None = Field(
        None, description="The actions of the spec, as kubectl lists them: `Warn, Audit`."
    )
    type_checking: TypeChecking | None = Field(
        None, description="Type errors of the CEL rules; missing if there are none."
    )
    violations: int | None = Field(None, description="Violations that the last audit found.")
    would_deny: int | None = Field(
        None, description="Objects with a violation, which would be denied if created now."
    )
    audited_objects: int | None = Field(
        None, description="Objects that the last audit judged by all policies."
    )


POLICY_COLUMNS = (
    Column("Policy", ".spec.policy", description="The policy that is in force."),
    Column("Actions", ".status.actions", description="Actions on a violation."),
    Column(
        "Ready",
        READY,
        description="Whether it is in force.",
    ),
    Column(
        "Violations",
        ".status.violations",
        "integer",
        description="Violations that the last audit found.",
    ),
    AGE,
    Column(
        "Message",
        READY_MESSAGE,
        description="Why the policy is not in force.",
        wide=True,
    ),
)


class ClusterAdmissionPolicy(CustomResource):
    """A policy in force for the whole cluster, or for the requests in its `match`."""

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

    spec: AdmissionPolicySpec = Field(description="The policy, its parameters and its scope.")
    status: PolicyStatus = Field(default_factory=PolicyStatus, description="The observed state.")


class AdmissionPolicy(CustomResource):
    """A tenant's policy: in force in its own namespace only, where it can only add restrictions."""

    definition = Definition(
        group=GROUP,
        version=VERSION,
        kind="AdmissionPolicy",
        plural="admissionpolicies",
        short_names=("ap",),
        columns=POLICY_COLUMNS,
    )

    spec: AdmissionPolicySpec = Field(description="The policy, its parameters and its scope.")
    status: PolicyStatus = Field(default_factory=PolicyStatus, description="The observed state.")


class PolicyMetadata(ApiModel):
    """The metadata of a document in a policy set; other fields are the API server's."""

    name: PolicyName = Field(description="name of the object; messages show it")
    namespace: PolicyName | None = Field(
        None, description="namespace, of a tenant's policy or an exception"
    )
    labels: dict[str, str] = Field({}, description="labels")
    annotations: dict[str, str] = Field(
        {},
        description=f"annotations; `{UNKNOWN_FIELDS}: allow` admits CEL rules about unknown fields",
    )


class PolicyDocument(ApiModel):
    """The fields that every document of a policy set has."""

    api_version: Literal["gatewright.io/v1alpha1"] = Field(
        description="always gatewright.io/v1alpha1"
    )
    kind: Literal["ClusterAdmissionPolicy", "AdmissionPolicy", "PolicyException"] = Field(
        description="kind of the document"
    )
    metadata: PolicyMetadata = Field(description="name and namespace")
    spec: dict[str, Any] = Field(description="contents of the document")
