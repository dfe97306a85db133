"""Objects have the required labels.

Why: on-call routing, cost allocation and selectors depend on labels.

A pattern is a glob (`team-*`) or a regular expression between slashes (`/[0-9]{4}/`, RE2 syntax);
it must match the whole value.

Judged: every kind in the table, unless `match` names kinds; objects of controllers and the release
Secrets of Helm too. The objects that Kubernetes itself creates are ignored: in every namespace the
ServiceAccount `default`, the ConfigMap `kube-root-ca.crt`, and OpenShift's; the Service
`kubernetes`; the namespaces `default` and `kube-*`; and the default roles and bindings (label
`kubernetes.io/bootstrapping: rbac-defaults`).

Allowed: `labels: {team: team-shop}` with `labels: {team: team-*}`.
Denied:  the label missing, or `team: shop`.
Fix: add the label, or correct its value.
"""

from pydantic import Field

from webhook.engine import Policy, Request, Violations
from webhook.policies._patterns import OnMetadata, Pattern


class RequiredLabels(OnMetadata):
    """The required labels, and patterns of their values."""

    labels: dict[str, Pattern] = Field(
        min_length=1, description='labels and patterns of their values; "*" is any value'
    )


def validate(request: Request, params: RequiredLabels) -> Violations:
    """Return one violation for each label that is missing or has another value."""
    return params.lacking(request, "labels", params.labels)


POLICY = Policy(
    "required-labels", RequiredLabels, validate=validate, kinds="all", category="metadata"
)
