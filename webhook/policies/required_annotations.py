"""Objects have the required annotations.

Why: an owner's address or a link to a run book helps only if every object has one.

A pattern is a glob (`*@example.com`) or a regular expression between slashes (RE2 syntax); it must
match the whole value.

Judged: every kind in the table, unless `match` names kinds; objects of controllers and the release
Secrets of Helm too. The objects that Kubernetes itself creates are ignored: in every namespace the
ServiceAccount `default`, the ConfigMap `kube-root-ca.crt`, and OpenShift's; the Service
`kubernetes`; the namespaces `default` and `kube-*`; and the default roles and bindings (label
`kubernetes.io/bootstrapping: rbac-defaults`).

Allowed: `annotations: {owner: shop@example.com}` with `annotations: {owner: "*@example.com"}`.
Denied:  the annotation missing, or `owner: shop`.
Fix: add the annotation, or correct its value.
"""

from pydantic import Field

from webhook.engine import Policy, Request, Violations
from webhook.policies._patterns import OnMetadata, Pattern


class RequiredAnnotations(OnMetadata):
    """The required annotations, and patterns of their values."""

    annotations: dict[str, Pattern] = Field(
        min_length=1, description='annotations and patterns of their values; "*" is any value'
    )


def validate(request: Request, params: RequiredAnnotations) -> Violations:
    """Return one violation for each annotation that is missing or has another value."""
    return params.lacking(request, "annotations", params.annotations)


POLICY = Policy(
    "required-annotations", RequiredAnnotations, validate=validate, kinds="all", category="metadata"
)
