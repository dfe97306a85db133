"""A resource of the API: group, version, plural and kind, its paths, and JSON objects.

Pure, so every package may import it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

JsonObject = dict[str, Any]
PathElement = str | int  # a field of an object, or an index of a list
FieldPath = tuple[PathElement, ...]
GroupKind = tuple[str, str]


class Resource(NamedTuple):
    """One resource of the API server: `Resource("apps", "v1", "deployments", "Deployment")`."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """The `apiVersion` of its objects: `apps/v1`, or `v1` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """The path of its group and version, where discovery answers."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """Return the path of a collection, of an object, or of an object's subresource."""
        if name is not None and self.namespaced and not namespace:
            raise ValueError(f"{self.kind} {name}: a namespace is needed")
        if namespace and not self.namespaced:
            raise ValueError(
                f"{self.kind} is not namespaced, but a namespace is given: {namespace}"
            )
        within = f"{self.root}/namespaces/{quote(namespace)}" if namespace else self.root
        # RBAC names may have any characters.
        parts = (self.plural, name and quote(name, safe=":"), subresource)
        return "/".join([within, *filter(None, parts)])

    def key(self, namespace: str | None, name: str) -> str:
        """Return an object's key in stores and queues: `namespace/name`, or `name`."""
        return f"{namespace}/{name}" if self.namespaced else name


CRD = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)


def definition_of(resource: Resource) -> str:
    """Return the name of a resource's CustomResourceDefinition."""
    return f"{resource.plural}.{resource.group}"


def group_version(api_version: str) -> tuple[str, str]:
    """Return the group and the version that an `apiVersion` names; the core group is ""."""
    group, _, version = api_version.rpartition("/")
    return group, version


def group_version_kind(object: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return group, version and kind of an object, or of what refers to one."""
    return *group_version(str(object.get("apiVersion", ""))), str(object.get("kind", ""))


def group_kind(object: Mapping[str, Any]) -> GroupKind:
    """Return group and kind of an object, or of what refers to one."""
    group, _, kind = group_version_kind(object)
    return group, kind


def title(kind: str, namespace: str | None, name: str) -> str:
    """Return the title of an object in messages: kind, namespace and name."""
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def title_of(object: Mapping[str, Any]) -> str:
    """Return the title of an object."""
    metadata = object.get("metadata")
    if not isinstance(metadata, dict):
        metadata = {}
    return title(object.get("kind", ""), metadata.get("namespace"), metadata.get("name", ""))


def target(path: str, query: Mapping[str, object]) -> str:
    """Return a path with the query parameters that have a value."""
    present = {name: value for name, value in query.items() if value}
    return f"{path}?{urlencode(present)}" if present else path
