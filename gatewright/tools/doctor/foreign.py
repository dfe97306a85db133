"""Policies and exceptions of Kyverno, Gatekeeper and Gatewright, with only the fields in use."""

from pydantic import AliasChoices, Field

from gatewright.tools.doctor.models import ClusterObject, FlatModel, at


class ActionOverride(FlatModel):
    """The action of a policy of Kyverno in some namespaces."""

    action: str = ""


class ForeignRule(FlatModel):
    """A rule of a policy of Kyverno."""

    validation: dict[str, object] | None = at("validate", None)
    action: str = at("validate.failureAction", "")
    overrides: list[ActionOverride] = at("validate.failureActionOverrides", [])


class ExceptedPolicy(FlatModel):
    """A policy that an exception names, in any of the three APIs that have exceptions."""

    name: str = Field("", validation_alias=AliasChoices("policyName", "policy", "name"))


class ReportedCondition(FlatModel):
    """A condition of the status."""

    type: str = ""
    status: str = ""
    reason: str = ""


class ForeignPolicy(FlatModel, ClusterObject):
    """A policy or an exception of Kyverno, Gatekeeper or Gatewright."""

    enforcement_action: str = at("spec.enforcementAction", "deny")
    validation_actions: list[str] = at("spec.validationActions", [])
    failure_action: str = at("spec.validationFailureAction", "Audit")
    overrides: list[ActionOverride] = at("spec.validationFailureActionOverrides", [])
    rules: list[ForeignRule] = at("spec.rules", [])
    exceptions: list[ExceptedPolicy] = at("spec.exceptions", [])
    policy_refs: list[ExceptedPolicy] = at("spec.policyRefs", [])
    conditions: list[ReportedCondition] = at("status.conditions", [])
