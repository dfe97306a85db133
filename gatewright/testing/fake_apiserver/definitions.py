"""The kinds that the fake serves: the usual built-in ones, and those of the CRDs created in it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from config.schemas import (
    METADATA,
    SET,
    FieldType,
    SchemaFields,
    collect,
    fields_of,
    parse_type,
    root_type,
)
from kube.resource import JsonObject, Resource, group_version

PRESERVES = "x-kubernetes-preserve-unknown-fields"
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
    root: str = ""  # the name of its type, in `types` or in the API server's OpenAPI
    types: Mapping[str, SchemaFields] = field(default_factory=dict)

    @property
    def bucket(self) -> tuple[str, str]:
        """The key of its objects in the storage: the same for all versions."""
        return (self.resource.group, self.resource.plural)

    def list_keys(self, path: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the keys of the list at a path of field names.

        () means a set; None means an atomic list.
        """
        keys = self._type_at(path).keys
        return () if keys == SET else keys or None

    def atomic(self, path: tuple[str, ...]) -> bool:
        """Return whether the mapping at this path is atomic: it has one owner as a whole."""
        return self._type_at(path).is_atomic

    def _type_at(self, path: tuple[str, ...]) -> FieldType:
        """Return the type of the field at a path, which passes through the items of lists."""
        type = parse_type(self.root)
        for name in path:
            while type.shape == "list":
                type = parse_type(type.inner)
            type = parse_type(
                self._fields(type).get(name, "") if type.shape == "struct" else type.inner
            )
        return type

    def _fields(self, struct: FieldType) -> SchemaFields:
        return self.types.get(struct.inner) or fields_of(struct.inner)


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
            root=root_type(api_version, kind) or "",
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
autoscaling/v2 horizontalpodautoscalers HorizontalPodAutoscaler S
networking.k8s.io/v1 ingresses Ingress SG
policy/v1 poddisruptionbudgets PodDisruptionBudget SG
coordination.k8s.io/v1 leases Lease
discovery.k8s.io/v1 endpointslices EndpointSlice G
storage.k8s.io/v1 storageclasses StorageClass C
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
                selectable["jsonPath"].lstrip(".")
                for selectable in version.get("selectableFields", [])
            ),
            root=names["kind"],
            types=types_of(schema, names["kind"]),
        )


def with_known_fields(schema: JsonObject) -> JsonObject:
    """Return a schema without `preserve-unknown-fields` where it also names fields.

    The API server merges those fields by their own types.
    """
    properties = {
        name: with_known_fields(property)
        for name, property in (schema.get("properties") or {}).items()
    }
    if not properties:
        return schema
    kept = {key: value for key, value in schema.items() if key != PRESERVES}
    return {**kept, "properties": properties}


def types_of(schema: JsonObject, root: str) -> dict[str, SchemaFields]:
    """Return the types of a custom kind's schema, with the metadata of every kind."""
    types: dict[str, SchemaFields] = {}
    collect(with_known_fields(schema), root, types)
    types[root] = {**types.get(root, {}), "apiVersion": "", "kind": "", "metadata": METADATA}
    return types
