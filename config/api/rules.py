"""CEL rules of policy objects: the fields of ValidatingAdmissionPolicy and MutatingAdmissionPolicy."""

from typing import Literal

from pydantic import Field

from config.api.meta import ApiModel


class Validation(ApiModel):
    """A rule in CEL: an object that makes it false is a violation."""

    expression: str = Field(min_length=1, description="CEL expression that must be true")
    message: str | None = Field(None, description="what is wrong; the expression itself by default")
    message_expression: str | None = Field(None, description="CEL expression for the message, a string")
    path: str | None = Field(
        None, description="field that the rule is about, such as `spec.replicas`; its value is part of the message"
    )
    reason: Literal["Unauthorized", "Forbidden", "Invalid", "RequestEntityTooLarge"] | None = Field(
        None, description="ignored; accepted since ValidatingAdmissionPolicy has it"
    )


class Variable(ApiModel):
    """A named CEL expression, evaluated at most once a request, when a rule reads `variables.NAME`."""

    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="name after `variables.`")
    expression: str = Field(min_length=1, description="CEL expression of any type")


class MatchCondition(ApiModel):
    """A CEL expression that must be true for the policy to apply."""

    name: str = Field(min_length=1, description="name of the condition; messages show it")
    expression: str = Field(min_length=1, description="CEL expression, a bool")


class Expression(ApiModel):
    """A CEL expression that returns what changes."""

    expression: str = Field(min_length=1, description="CEL expression: Object{…}, or a list of JSONPatch{…}")


class Mutation(ApiModel):
    """A change of the object, as in MutatingAdmissionPolicy."""

    patch_type: Literal["ApplyConfiguration", "JSONPatch"] = Field(description="which of the two is given")
    apply_configuration: Expression | None = Field(None, description="fields to merge by server-side apply's rules")
    json_patch: Expression | None = Field(None, alias="jsonPatch", description="operations of RFC 6902")
