"""The scope of a policy (gatewright.io/v1alpha1): kinds, names, namespaces, labels and users.

Label selectors.
"""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from config.api.meta import ApiModel

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]

LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
LABEL_KEY = re.compile(
    r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
SERVICE_ACCOUNT = re.compile(r"(?=.{1,480}$)[^/:]+/[^/:]+|\*")
NAMESPACE = re.compile(r"(?=.*[*?])[-a-z0-9*?]{1,63}|[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def _like(pattern: re.Pattern[str], expected: str) -> AfterValidator:
    """Return a check for text that could never match: its policy would silently do nothing."""

    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(f"expected {expected}")
        return text

    return AfterValidator(check)


LabelKey = Annotated[str, _like(LABEL_KEY, "the key of a label, such as app.kubernetes.io/name")]
LabelValue = Annotated[str, _like(LABEL_VALUE, "the value of a label")]
GlobPattern = Annotated[
    str, _like(re.compile(r".{0,480}", re.DOTALL), "a pattern of at most 480 characters")
]
NamespaceGlob = Annotated[
    str,
    _like(NAMESPACE, "a namespace: lower-case letters, digits and -, or a pattern with * and ?"),
]
ServiceAccountGlob = Annotated[
    str,
    _like(
        SERVICE_ACCOUNT,
        "namespace/name, such as kube-system/replicaset-controller or kube-system/*",
    ),
]


class LabelSelectorRequirement(ApiModel):
    """One expression of a label selector (meta/v1)."""

    key: LabelKey = Field(description="label that the expression tests")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = Field(
        description="how its value is compared"
    )
    values: list[LabelValue] = Field([], description="values for In and NotIn")

    @model_validator(mode="after")
    def _fits(self) -> "LabelSelectorRequirement":
        if (self.operator in ("In", "NotIn")) != bool(self.values):
            raise ValueError(
                "expected values with the operators In and NotIn, and none with Exists and "
                "DoesNotExist"
            )
        return self


class LabelSelector(ApiModel):
    """A label selector (meta/v1): all parts must match; an empty one selects everything."""

    match_labels: dict[LabelKey, LabelValue] = Field(
        {}, description="labels that must have exactly these values"
    )
    match_expressions: list[LabelSelectorRequirement] = Field(
        [], description="expressions that must all match"
    )


class MatchClause(ApiModel):
    """One alternative of a match: every field that is set must match."""

    kinds: list[str] | None = Field(
        None, min_length=1, description="kinds, such as Deployment (its /scale included)"
    )
    operations: list[Operation] | None = Field(
        None, min_length=1, description="operations: CREATE, UPDATE …"
    )
    subresources: list[str] | None = Field(
        None, min_length=1, description='subresources; "" is the whole object'
    )
    names: list[GlobPattern] | None = Field(
        None, min_length=1, description="names of objects; `*` and `?` are globs"
    )
    namespaces: list[NamespaceGlob] | None = Field(
        None, min_length=1, description="names of namespaces; `*` and `?` are globs"
    )
    namespace_selector: LabelSelector | None = Field(
        None, description="labels of the object's namespace"
    )
    object_selector: LabelSelector | None = Field(
        None, description="labels of the object itself; the object's author can set them"
    )
    pod_selector: LabelSelector | None = Field(
        None,
        description=(
            "labels of the Pod, or of the pod template of a workload; the object's author can set "
            "them"
        ),
    )


class Exclude(ApiModel):
    """Users whose requests never match."""

    users: list[GlobPattern] = Field([], description="user names; `*` and `?` are globs")
    groups: list[GlobPattern] = Field([], description="groups; `*` and `?` are globs")
    service_accounts: list[ServiceAccountGlob] = Field(
        [], description="service accounts as namespace/name; `*` and `?` are globs"
    )


class MatchSpec(ApiModel):
    """The requests that a policy applies to; without any clause, all."""

    any: list[MatchClause] = Field([], description="at least one of these clauses must match")
    exclude: Exclude = Field(
        Exclude.model_construct(), description="users whose requests never match"
    )
