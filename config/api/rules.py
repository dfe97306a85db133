"""CEL rules of policy objects: the fields of Kubernetes' own admission policies."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from config.api.meta import ApiModel


def _path(text: str) -> str:
    """Refuse other notations of paths, such as JSONPath: nothing would be found there."""
    if text.startswith((".", "/", "$", "object.")):
        raise ValueError(
            "expected a path from the object, such as spec.replicas or metadata.labels[team]"
        )
    return text


class Validation(ApiModel):
    """A rule in CEL; an object for which it is false violates the policy."""

    expression: str = Field(min_length=1, description="CEL expression that must be true")
    message: str | None = Field(
        None, description="message of the violation; default: the expression itself"
    )
    message_expression: str | None = Field(
        None, description="CEL expression for the message, a string"
    )
    path: Annotated[str, AfterValidator(_path)] | None = Field(
        None,
        description="field that the rule tests, such as `spec.replicas`; the message shows its "
        "value",
    )
    reason: Literal["Unauthorized", "Forbidden", "Invalid", "RequestEntityTooLarge"] | None = Field(
        None, description="accepted for compatibility with ValidatingAdmissionPolicy, and ignored"
    )


class Variable(ApiModel):
    """A named CEL expression, evaluated once a request if a rule reads `variables.NAME`."""

    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="name after `variables.`")
    expression: str = Field(min_length=1, description="CEL expression of any type")


class MatchCondition(ApiModel):
    """A CEL expression that must be true for the policy to apply."""

    name: str = Field(min_length=1, description="name of the condition; messages show it")
    expression: str = Field(min_length=1, description="CEL expression, a bool")


class Expression(ApiModel):
    """A CEL expression that returns changes."""

    expression: str = Field(
        min_length=1, description="CEL expression: Object{…}, or a list of JSONPatch{…}"
    )


class Mutation(ApiModel):
    """A change of the object, as in MutatingAdmissionPolicy."""

    patch_type: Literal["ApplyConfiguration", "JSONPatch"] = Field(
        description="which of the two fields is set"
    )
    apply_configuration: Expression | None = Field(
        None, description="fields to merge by the rules of server-side apply"
    )
    json_patch: Expression | None = Field(
        None, alias="jsonPatch", description="operations of RFC 6902"
    )
