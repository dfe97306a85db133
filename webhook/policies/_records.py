"""Select records for rules: those that set a field, those that a controller owns."""

import re
from collections.abc import Iterable

from webhook.engine import Fields, Request
from webhook.engine.kinds import RBAC

# Kinds that their controllers find by comparing templates.
COPIES = ("ReplicaSet", "ReplicationController")
# Objects that the controllers of Kubernetes and of OpenShift create in every namespace, and without
# which no pod starts there.
OF_EVERY_NAMESPACE = {
    ("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt"),
    ("ConfigMap", "openshift-service-ca.crt"),
    ("ServiceAccount", "builder"), ("ServiceAccount", "deployer"),
}  # fmt: skip
# Names of namespaces that Kubernetes reserves, the API server's own Service in `default`, and the
# label of the roles and bindings that the API server keeps.
RESERVED = re.compile("default|kube-.*")
OF_API_SERVER = "Service", "kubernetes"
DEFAULT_ROLE = "kubernetes.io/bootstrapping", "rbac-defaults"


LabelRequirement = tuple[str | None, str | None, list[str]]  # key, operator, values


def requirements(selector: Fields) -> list[LabelRequirement]:
    """Return the requirements of a label selector; an empty one has none, and selects all."""
    exact = selector.texts("matchLabels").items()
    return [
        *((key, "In", [value]) for key, value in exact),
        *(
            (expression.string("key"), expression.string("operator"), expression.strings("values"))
            for expression in selector.each("matchExpressions")
        ),
    ]


def having(records: Iterable[Fields], field: str) -> list[Fields]:
    """Return the records that set a field: most do not, and reading costs more."""
    return [each for each in records if each.value.get(field) is not None]


def is_of_every_namespace(request: Request) -> bool:
    """Return whether Kubernetes itself creates an object of this name in the namespace."""
    name = request.kind, request.name
    if name == OF_API_SERVER:
        return request.string("metadata.namespace") == "default"
    return name in OF_EVERY_NAMESPACE


def is_made_by_kubernetes(request: Request) -> bool:
    """Return whether Kubernetes itself creates this object, in each cluster or namespace."""
    if request.kind == "Namespace":
        return RESERVED.fullmatch(request.name) is not None
    if request.attributes.group == RBAC:
        label, value = DEFAULT_ROLE
        return request.fields("metadata").texts("labels").get(label) == value
    return is_of_every_namespace(request)


def is_controlled(object: Fields) -> bool:
    """Return whether an object has an owner that is its controller."""
    return any(owner.boolean("controller") for owner in object.each("metadata.ownerReferences"))


def is_copy(request: Request) -> bool:
    """Return whether the object's controller compares it with a template.

    If the object were changed, the controller would create another one.
    """
    return request.kind in COPIES and is_controlled(request)


def is_scaled_by_deployment(workload: Fields) -> bool:
    """Return whether it is a ReplicaSet of a Deployment, which decides how many replicas it has."""
    return workload.string("kind") == "ReplicaSet" and is_controlled(workload)
