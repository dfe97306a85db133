"""PolicyException (gatewright.io/v1alpha1): exemptions from policies, with a reason and an end."""

from typing import Annotated, Any

from pydantic import AwareDatetime, Field

from config.api.definition import AGE, READY, Column, Definition
from config.api.match import GlobPattern, NamespaceGlob
from config.api.meta import OPEN, ApiModel, CustomResource, Status
from config.api.policy import GROUP, VERSION


class ExceptionEntry(ApiModel):
    """An exemption from one policy object; every field that is set must match."""

    policy: str = Field(description="name of the policy object")
    kinds: list[str] | None = Field(None, min_length=1, description="kinds, such as Deployment")
    names: list[GlobPattern] | None = Field(
        None, min_length=1, description="names of objects; `*` and `?` are globs"
    )
    namespaces: list[NamespaceGlob] | None = Field(
        None, min_length=1, description="names of namespaces; `*` and `?` are globs"
    )
    containers: list[GlobPattern] | None = Field(
        None,
        min_length=1,
        description="names of the only containers to exempt; `*` and `?` are globs",
    )
    images: list[GlobPattern] | None = Field(
        None,
        min_length=1,
        description="images whose containers alone are exempt, by the parts of a reference: "
        "`redis:*` is docker.io/library/redis with any tag; a last `/*` covers everything below",
    )
    paths: list[str] | None = Field(
        None,
        min_length=1,
        description="fields whose violations alone are exempt, as messages name them",
    )
    params: dict[str, Any] | None = Field(
        None,
        description="judge with these parameters, merged over the policy's own, instead of "
        "exempting",
        json_schema_extra=OPEN,
    )


class PolicyExceptionSpec(ApiModel):
    """The exemptions, their reason and their end."""

    reason: str = Field(min_length=1, description="why")
    ticket: str | None = Field(None, description="ticket in which it was approved")
    expires: Annotated[AwareDatetime, Field(strict=False)] = Field(
        description="expiry time, such as 2027-01-31T00:00:00Z; afterwards the exception has no "
        "effect"
    )
    exceptions: list[ExceptionEntry] = Field(min_length=1, description="exemptions from policies")


class ExceptionStatus(Status):
    """The status of an exception."""

    covers: int | None = Field(
        None, description="Violations that it covered in the last audit; 0 for an unused one."
    )


class PolicyException(CustomResource):
    """An exception from policies, with a reason and an expiry time.

    In the namespace that Gatewright is installed in, it exempts from cluster policies; elsewhere
    only from the AdmissionPolicies of its own namespace.
    """

    definition = Definition(
        group=GROUP,
        version=VERSION,
        kind="PolicyException",
        plural="policyexceptions",
        short_names=("polex",),
        columns=(
            Column("Expires", ".spec.expires", description="When the exception expires."),
            Column("Reason", ".spec.reason", description="Reason for the exception."),
            Column(
                "Ready",
                READY,
                description="Whether the exception is in force.",
            ),
            Column(
                "Covers",
                ".status.covers",
                type="integer",
                description="Violations that it covered in the last audit.",
            ),
            AGE,
        ),
    )

    spec: PolicyExceptionSpec = Field(
        description="The exemptions, their reason and their expiry time."
    )
    status: ExceptionStatus = Field(
        default_factory=ExceptionStatus, description="The observed state."
    )
