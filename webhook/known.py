"""The known state of a cluster: its namespaces, and look-ups of policies. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from config.schemas import CustomTypes
from kube.resource import JsonObject, group_kind
from webhook.engine import NAMESPACE, NAMESPACE_LABELS, SCHEMAS, SERVED, NotLookedUpError
from webhook.engine.kinds import Kind
from webhook.engine.look_ups import LOOK_UPS
from webhook.engine.match import Labels
from webhook.engine.planners import Served
from webhook.engine.request import NAME_LABEL


class UnknownLabels(Mapping[str, str]):
    """The labels of a namespace of which only the name is known.

    Reading any label other than the name label raises NotLookedUpError.
    """

    def __init__(self, namespace: str) -> None:
        """Use this namespace name."""
        self._namespace = namespace

    def __getitem__(self, key: str) -> str:
        if key != NAME_LABEL:
            raise NotLookedUpError(NAMESPACE_LABELS)
        return self._namespace

    def __iter__(self) -> Iterator[str]:
        raise NotLookedUpError(NAMESPACE_LABELS)

    def __len__(self) -> int:
        raise NotLookedUpError(NAMESPACE_LABELS)


class Known:
    """Namespaces and looked-up objects: of manifests, of a cluster, or of both."""

    def __init__(self) -> None:
        """Start without objects; the labels of all namespaces are unknown."""
        self.kinds: dict[tuple[str, str], Kind] = {}
        """Custom kinds, by group and name."""
        self.served: Served = ()
        """The optional APIs that the cluster serves."""
        self.served_types = CustomTypes()
        """The types of custom kinds that the cluster serves, as far as policies need them."""
        self._definitions: list[JsonObject] = []
        self._custom_types: CustomTypes | None = None
        self.images: Mapping[str, Any] = {}
        """The look-ups of images; without any, policies about images cannot decide."""
        self._labels: dict[str, Labels] = {}
        self._stored: dict[str, JsonObject | None] = {}
        self._found: dict[str, dict[str, dict[tuple[str, str, str], JsonObject]]] = {
            name: {} for name in LOOK_UPS
        }
        self._about: dict[str, Mapping[str, Any]] = {}

    def set_labels(
        self, namespace: str, labels: Labels | None, stored: JsonObject | None = None
    ) -> None:
        """Set the labels of a namespace.

        `stored` is the Namespace object, if the cluster has it with these labels.
        """
        self._labels[namespace] = {NAME_LABEL: namespace, **(labels or {})}
        self._stored[namespace] = stored
        self._about.clear()

    def add(self, object: JsonObject, namespace: str) -> None:
        """Add an object of `namespace` ("" if cluster-scoped), or replace the one of the same name.

        An object without a name is ignored. A Namespace sets its labels; a CustomResourceDefinition
        adds its kind.
        """
        kind, name = group_kind(object), object["metadata"].get("name")
        if not name:
            return
        if kind == ("", "Namespace"):
            self.set_labels(name, object["metadata"].get("labels"))
        for look_up_name, objects in self._found.items():
            look_up = LOOK_UPS[look_up_name]
            if look_up.includes(kind):
                there = objects.setdefault("" if look_up.everywhere else namespace, {})
                there[kind[1], namespace, name] = look_up.used_part(object, namespace)
        match object:
            case {
                "spec": {"group": str(group), "names": {"kind": str(of), "plural": str(plural)}},
            } if kind == ("apiextensions.k8s.io", "CustomResourceDefinition"):
                versions = object["spec"].get("versions") or ()
                served = [
                    str(version["name"])
                    for version in versions
                    if version.get("name") and version.get("served", True)
                ]
                namespaced = object["spec"].get("scope") != "Cluster"
                self.kinds[group, of] = Kind(
                    group, of, plural, tuple(served) or ("v1",), namespaced=namespaced
                )
                self._definitions.append(object)
                self._custom_types = None
        self._about.clear()

    @property
    def custom_types(self) -> CustomTypes:
        """The types of custom kinds: as the cluster serves them, or else as defined by objects."""
        if self._custom_types is None:
            self._custom_types = CustomTypes.of(self._definitions)
        return self._custom_types.beside(self.served_types)

    def forget(self, look_up: str) -> None:
        """Remove a look-up that could not be read: policies that need it cannot decide."""
        del self._found[look_up]
        self._about.clear()

    def knows(self, namespace: str) -> bool:
        """Whether the labels of a namespace are known."""
        return not namespace or namespace in self._labels

    def seen_by(self, needs: frozenset[str]) -> tuple[object, ...]:
        """Return the data that policies with these needs depend on, for comparison."""
        objects = {name: each for name, each in self._found.items() if name in needs}
        return self.kinds, self.images, self._labels, self._stored, objects

    def about(self, namespace: str) -> Mapping[str, Any]:
        """Return the look-ups for an object in `namespace`."""
        if namespace not in self._about:
            self._about[namespace] = self._look_up(namespace)
        return self._about[namespace]

    def _look_up(self, namespace: str) -> Mapping[str, Any]:
        is_known = namespace in self._labels
        look_ups: dict[str, Any] = {
            name: [*there.get("" if LOOK_UPS[name].everywhere else namespace, {}).values()]
            for name, there in self._found.items()
            if is_known or not LOOK_UPS[name].completes
        }
        labels = self._labels[namespace] if is_known else UnknownLabels(namespace)
        return {
            **look_ups,
            **self.images,
            SERVED: self.served,
            SCHEMAS: lambda: self.custom_types,
            NAMESPACE: self._stored.get(namespace),
            NAMESPACE_LABELS: labels,
        }
