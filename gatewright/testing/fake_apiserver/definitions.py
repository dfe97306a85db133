"""The kinds that the fake serves: the usual built-in ones, and those of the CRDs created in it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kube.resource import JsonObject, Resource, group_version

BUILT_IN_LISTS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "conditions": ("type",),
    "ownerReferences": ("uid",),
    "webhooks": ("name",),
    "matchConditions": ("name",),
    "finalizers": (),  # a set
}
METADATA_LISTS = {
    ("metadata", name): BUILT_IN_LISTS[name] for name in ("ownerReferences", "finalizers")
}
BUILT_IN_ATOMS = frozenset(
    {"selector", "nodeSelector", "configMapKeyRef", "secretKeyRef", "fieldRef", "resourceFieldRef"}
)
SELECTABLE = {
    "Pod": ("spec.nodeName", "status.phase"),
    "Secret": ("type",),
    "Event": ("regarding.kind", "regarding.name", "regarding.uid"),
}


@dataclass(frozen=True)
class ServedResource:
    """One resource, and how the API server treats its objects."""

    resource: Resource
    status: bool = False
    generation: bool = False
    custom: bool = False
    schema: JsonObject = field(default_factory=dict)
    selectable: tuple[str, ...] = ()
    lists: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)

    @property
    def bucket(self) -> tuple[str, str]:
        """The key of its objects in the storage: the same for all versions."""
        return (self.resource.group, self.resource.plural)

    def list_keys(self, path: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the keys of the list at a path of field names.

        () means a set; None means an atomic list.
        """
        if self.custom:
            return self.lists.get(path)
        if path[-1] == "ports":
            return (
                ("containerPort", "protocol")
                if "containers" in path[-2].lower()
                else ("port", "protocol")
            )
        return BUILT_IN_LISTS.get(path[-1])

    def atomic(self, path: tuple[str, ...]) -> bool:
        """Return whether the mapping at this path is atomic: it has one owner as a whole."""
        return not self.custom and path[-1] in BUILT_IN_ATOMS


def built_in() -> Iterator[ServedResource]:
    """Yield the built-in kinds.

    The letters mean: S with status, G with generation, C cluster-scoped.
    """
    for line in KINDS.strip().splitlines():
        api_version, plural, kind, *flags = line.split()
        traits = "".join(flags)
        resource = Resource(*group_version(api_version), plural, kind, namespaced="C" not in traits)
        yield ServedResource(
            resource,
            status="S" in traits,
            generation="G" in traits,
            selectable=SELECTABLE.get(kind, ()),
        )


KINDS = """
v1 namespaces Namespace SC
v1 nodes Node SC
v1 pods Pod SG
v1 configmaps ConfigMap
v1 secrets Secret
v1 services Service S
v1 serviceaccounts ServiceAccount
v1 events Event
v1 endpoints Endpoints
v1 persistentvolumeclaims PersistentVolumeClaim S
v1 limitranges LimitRange
v1 replicationcontrollers ReplicationController SG
apps/v1 deployments Deployment SG
apps/v1 statefulsets StatefulSet SG
apps/v1 daemonsets DaemonSet SG
apps/v1 replicasets ReplicaSet SG
batch/v1 jobs Job SG
batch/v1 cronjobs CronJob SG
networking.k8s.io/v1 ingresses Ingress SG
policy/v1 poddisruptionbudgets PodDisruptionBudget SG
coordination.k8s.io/v1 leases Lease
events.k8s.io/v1 events Event
rbac.authorization.k8s.io/v1 roles Role
rbac.authorization.k8s.io/v1 rolebindings RoleBinding
rbac.authorization.k8s.io/v1 clusterroles ClusterRole C
rbac.authorization.k8s.io/v1 clusterrolebindings ClusterRoleBinding C
admissionregistration.k8s.io/v1 validatingwebhookconfigurations ValidatingWebhookConfiguration GC
admissionregistration.k8s.io/v1 mutatingwebhookconfigurations MutatingWebhookConfiguration GC
apiextensions.k8s.io/v1 customresourcedefinitions CustomResourceDefinition SGC
"""


def from_crd(crd: JsonObject) -> Iterator[ServedResource]:
    """Yield a definition for each served version of a CRD."""
    spec = crd["spec"]
    for version in spec["versions"]:
        if not version["served"]:
            continue
        names = spec["names"]
        schema = version.get("schema", {}).get("openAPIV3Schema", {})
        yield ServedResource(
            Resource(
                spec["group"],
                version["name"],
                names["plural"],
                names["kind"],
                spec["scope"] == "Namespaced",
            ),
            status="status" in version.get("subresources", {}),
            generation=True,
            custom=True,
            schema=schema,
            selectable=tuple(
                each["jsonPath"].lstrip(".") for each in version.get("selectableFields", [])
            ),
            lists=dict(keyed_lists(schema)) | METADATA_LISTS,
        )


def keyed_lists(
    schema: Any, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield the keyed lists of a schema, by path of field names, with the keys of their items."""
    if schema.get("x-kubernetes-list-type") == "map":
        yield path, tuple(schema["x-kubernetes-list-map-keys"])
    if schema.get("x-kubernetes-list-type") == "set":
        yield path, ()
    if "items" in schema:
        yield from keyed_lists(schema["items"], path)
    for name, each in schema.get("properties", {}).items():
        yield from keyed_lists(each, (*path, name))
