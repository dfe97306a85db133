"""The known part of a cluster when manifests are judged: namespace labels and the objects that policies look up."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from webhook.engine import NAMESPACE, NAMESPACE_LABELS, NotLookedUpError
from webhook.engine.look_ups import LOOK_UPS
from webhook.engine.request import NAME_LABEL
from webhook.harness.bases import is_cluster_scoped

CLUSTER_SCOPED = frozenset(  # built-in kinds that no policy applies to
    {
        "APIService",
        "CSIDriver",
        "CertificateSigningRequest",
        "CustomResourceDefinition",
        "FlowSchema",
        "IngressClass",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "PriorityLevelConfiguration",
        "RuntimeClass",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
        "VolumeAttributesClass",
    }
)

Object = dict[str, Any]
Labels = Mapping[str, str]
NO_LABELS: Mapping[str, Labels] = {}


class UnknownLabels(Mapping[str, str]):
    """The labels of a namespace known by name only. Raises NotLookedUpError for other labels than its name's."""

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
    """The known objects of a cluster: manifests, or objects listed from an API server."""

    def __init__(
        self,
        objects: Iterable[Object],
        namespace: str,
        labels: Mapping[str, Labels] = NO_LABELS,
        stored: Iterable[Object] = (),
    ) -> None:
        """Index `objects`; those without a namespace are in `namespace`.

        `labels` are those of namespaces; the labels of a Namespace among the objects override them, and they override
        those of the Namespaces that are `stored` in a cluster.
        """
        named = [each for each in objects if each["metadata"].get("name")]
        own = _labels_of(each for each in named if each["kind"] == "Namespace")
        self.plurals = dict(_plurals(named))  # by group and kind
        overriding = {**labels, **own}
        self._stored = {name: each for each in stored if (name := each["metadata"]["name"]) not in overriding}
        known = {**_labels_of(self._stored.values()), **overriding}
        self._labels = {name: {NAME_LABEL: name, **(each or {})} for name, each in known.items()}
        self._found: dict[str, dict[str, list[Object]]] = {name: {} for name in LOOK_UPS}
        self._about: dict[str, Mapping[str, Any]] = {}
        for name, look_up in LOOK_UPS.items():
            for each in named:
                if each["kind"] in look_up.kinds:
                    where = namespace_of(each, namespace)
                    place = "" if look_up.everywhere else where
                    self._found[name].setdefault(place, []).append(look_up.shaped(each, where))

    def knows(self, namespace: str) -> bool:
        """Whether the labels of a namespace are known."""
        return not namespace or namespace in self._labels

    def about(self, namespace: str) -> Mapping[str, Any]:
        """Return the look-ups for an object in `namespace`."""
        if namespace not in self._about:
            self._about[namespace] = self._look_up(namespace)
        return self._about[namespace]

    def _look_up(self, namespace: str) -> Mapping[str, Any]:
        is_known = namespace in self._labels
        found: dict[str, Any] = {
            name: self._found[name].get("" if look_up.everywhere else namespace, [])
            for name, look_up in LOOK_UPS.items()
            if not look_up.completes or is_known
        }
        labels = self._labels[namespace] if is_known else UnknownLabels(namespace)
        return found | {NAMESPACE: self._stored.get(namespace), NAMESPACE_LABELS: labels}


def _labels_of(namespaces: Iterable[Object]) -> dict[str, Labels | None]:
    return {each["metadata"]["name"]: each["metadata"].get("labels") for each in namespaces}


def _plurals(objects: Iterable[Object]) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield group and kind of each CustomResourceDefinition with its plural."""
    for each in objects:
        match each:
            case {
                "kind": "CustomResourceDefinition",
                "spec": {"group": str(group), "names": {"kind": str(kind), "plural": str(plural)}},
            }:
                yield (group, kind), plural


def identity(object: Object, namespace: str) -> tuple[str, str, str]:
    """Return kind, namespace and name of an object; `namespace` is the default namespace."""
    return object["kind"], namespace_of(object, namespace), object["metadata"].get("name", "")


def namespace_of(object: Object, namespace: str) -> str:
    """Return the namespace of an object: its own, else `namespace`; "" for a cluster-scoped kind."""
    if object["kind"] in CLUSTER_SCOPED or is_cluster_scoped(object["kind"]):
        return ""
    return object["metadata"].get("namespace") or namespace
