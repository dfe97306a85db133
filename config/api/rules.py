"""CEL rules of policy objects: the fields of Kubernetes' own admission policies."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from config.api.match import LABEL_KEY
from config.api.meta import ApiModel

# Words that CEL's grammar reserves.
RESERVED = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function",
    "if", "import", "let", "loop", "package", "namespace", "return", "var", "void", "while",
})  # fmt: skip


def _path(text: str) -> str:
    """Reject other notations of paths, such as JSONPath: no field would match them."""
    if text.startswith((".", "/", "$", "object.")):
        raise ValueError(
            "expected a path from the object, such as spec.replicas or metadata.labels[team]"
        )
    return text


def _message(text: str) -> str:
    """Reject what the API server rejects: a message must be one line."""
    if not text.strip():
        raise ValueError("expected text, or no message at all")
    if "\n" in text.strip() or "\r" in text.strip():
        raise ValueError("a message has no line breaks; write it in one line (`>-` in YAML)")
    return text


def _identifier(text: str) -> str:
    """Reject a name that CEL reserves: no expression could refer to it."""
    if text in RESERVED:
        raise ValueError(f'"{text}" is reserved in CEL; choose another name')
    return text


def _check_qualified_name(text: str) -> str:
    """Reject a text that is not a qualified name, as the API server does."""
    if not LABEL_KEY.fullmatch(text):
        raise ValueError("expected a name of letters, digits, -, _ and ., such as not-for-admins")
    return text


class Validation(ApiModel):
    """A rule in CEL; an object for which it is false violates the policy."""

    expression: str = Field(min_length=1, description="CEL expression that must be true")
    message: Annotated[str, AfterValidator(_message)] | None = Field(
        None, description="message of the violation, one line; default: the expression itself"
    )
    message_expression: str | None = Field(
        None, description="CEL expression for the message, a string"
    )
    path: Annotated[str, AfterValidator(_path)] | None = Field(
        None,
        description="field that the rule tests, such as `spec.replicas`; the message shows its "
        "value",
    )
    reason: Literal["Forbidden", "Invalid", "RequestEntityTooLarge"] | None = Field(
        None, description="accepted for compatibility with ValidatingAdmissionPolicy, and ignored"
    )


class Variable(ApiModel):
    """A named CEL expression, evaluated once a request if a rule reads `variables.NAME`."""

    name: Annotated[str, AfterValidator(_identifier)] = Field(
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="name after `variables.`"
    )
    expression: str = Field(min_length=1, description="CEL expression of any type")


class MatchCondition(ApiModel):
    """A CEL expression that must be true for the policy to apply."""

    name: Annotated[str, AfterValidator(_check_qualified_name)] = Field(
        min_length=1, description="unique name of the condition; messages show it"
    )
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
