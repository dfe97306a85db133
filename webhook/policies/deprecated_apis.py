"""No object is written in a removed or deprecated API version.

Why: a manifest in an old API version fails to apply after the Kubernetes upgrade that removes that
version.

Judged: the version of the request, before the API server converts it; in files, the `apiVersion`.
The version with which an object was created is unknown, so an update is allowed with a warning.

Allowed: `networking.k8s.io/v1` Ingress.
Denied:  `extensions/v1beta1` Ingress, which Kubernetes 1.22 removed; with `deprecated`, also
         versions that `release` deprecates.
Fix: use the version that the message names.
See: https://kubernetes.io/docs/reference/using-api/deprecation-guide/
"""

from collections.abc import Iterator

from pydantic import Field

from kube.resource import group_version
from webhook.engine import Params, Policy, Request, Violation, Violations
from webhook.engine.kinds import KINDS, RBAC, Kind, plural
from webhook.policies._api_lifecycles import LATEST, LIFECYCLES

# Rows without markers in k8s.io/api: kinds that it no longer has, and kinds of other modules.
OTHERS = (
    ("extensions/v1beta1", "PodSecurityPolicy", "", 11, 16),
    ("policy/v1beta1", "PodSecurityPolicy", "", 21, 25),
    ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", "v1", 16, 22),
    ("apiregistration.k8s.io/v1beta1", "APIService", "v1", 19, 22),
    (f"{RBAC}/v1alpha1", "ClusterRole ClusterRoleBinding Role RoleBinding", "v1", 17, 22),
    ("autoscaling/v2beta1", "HorizontalPodAutoscaler", "v2", 22, 25),
    ("autoscaling/v2beta2", "HorizontalPodAutoscaler", "v2", 23, 26),
)
BY_KIND = {
    (old, kind): (
        new if "/" in new or not new else f"{old.rpartition('/')[0]}/{new}",
        deprecated,
        removed,
    )
    for old, kinds, new, deprecated, removed in (*LIFECYCLES, *OTHERS)
    for kind in kinds.split()
}


class DeprecatedAPIs(Params):
    """Which versions are denied."""

    release: str = Field(
        LATEST,
        pattern=r"^1\.[0-9]{1,3}$",
        description="Kubernetes release whose removals are denied",
    )
    deprecated: bool = Field(
        False, description="whether versions that it deprecates are denied too"
    )


def validate(request: Request, params: DeprecatedAPIs) -> Violations:
    """Yield a violation for a version that the release removed, or deprecated."""
    attributes = request.attributes
    group, version, kind = attributes.requested or (
        attributes.group,
        attributes.version,
        attributes.kind,
    )
    api_version = f"{group}/{version}" if group else version
    if (api_version, kind) not in BY_KIND:
        return
    new, deprecated, removed = BY_KIND[api_version, kind]
    found, fix = f"{api_version} {kind}", f"use {new}" if new else "remove the object"
    minor = int(params.release.removeprefix("1."))
    if removed <= minor:
        yield Violation("apiVersion", found, f"Kubernetes 1.{removed} removed it", fix)
    elif params.deprecated and deprecated <= minor:
        rule = f"Kubernetes 1.{deprecated} deprecated it, and 1.{removed} removes it"
        yield Violation("apiVersion", found, rule, fix)


def _judged_kinds() -> Iterator[Kind]:
    """Yield the kinds of the table; of other kinds, the old versions, which alone are judged."""
    versions: dict[tuple[str, str], list[str]] = {}
    for api_version, kind in BY_KIND:
        group, version = group_version(api_version)
        versions.setdefault((group, kind), []).append(version)
    for (group, kind), old in versions.items():
        yield KINDS.get((group, kind)) or Kind(group, kind, plural(kind), tuple(old))


POLICY = Policy(
    "deprecated-apis",
    DeprecatedAPIs,
    validate=validate,
    kinds=tuple(_judged_kinds()),
    category="workloads",
)
