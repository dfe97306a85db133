"""The objects that doctor has read, found by kind, namespace and name."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import ValidationError

from config.api.match import LabelSelector
from config.documents import Document
from config.faults import faults
from gatewright.doctor import models
from gatewright.doctor.models import (
    AdmissionWebhook,
    ClusterObject,
    ClusterService,
    EndpointSlice,
    ServiceReference,
    WebhookConfiguration,
)
from gatewright.doctor.workloads import DisruptionBudget, ServingWorkload
from kube.resource import group_kind
from webhook.engine.match import Labels, compile_selector

ADMISSION = "admissionregistration.k8s.io"
MODELS: Mapping[tuple[str, str], type[ClusterObject]] = {
    (ADMISSION, "ValidatingWebhookConfiguration"): WebhookConfiguration,
    (ADMISSION, "MutatingWebhookConfiguration"): WebhookConfiguration,
    (ADMISSION, "ValidatingAdmissionPolicy"): models.ClusterPolicy,
    (ADMISSION, "MutatingAdmissionPolicy"): models.ClusterPolicy,
    (ADMISSION, "ValidatingAdmissionPolicyBinding"): models.ClusterBinding,
    (ADMISSION, "MutatingAdmissionPolicyBinding"): models.ClusterBinding,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): models.ResourceDefinition,
    ("apiregistration.k8s.io", "APIService"): models.ApiService,
    ("", "Service"): ClusterService,
    ("", "Namespace"): ClusterObject,
    ("", "Secret"): models.TlsSecret,
    ("discovery.k8s.io", "EndpointSlice"): EndpointSlice,
    ("policy", "PodDisruptionBudget"): DisruptionBudget,
    ("apps", "Deployment"): ServingWorkload,
    ("apps", "StatefulSet"): ServingWorkload,
    ("apps", "DaemonSet"): ServingWorkload,
}
FOREIGN_GROUPS = ("kyverno.io", "constraints.gatekeeper.sh", "gatewright.io")
READ = TypeVar("READ", bound=ClusterObject)
WebhookKey = tuple[str, int]  # the title of its configuration, and its index there


@dataclass(frozen=True, slots=True)
class Registered:
    """A webhook of a configuration."""

    configuration: WebhookConfiguration
    index: int

    @property
    def webhook(self) -> AdmissionWebhook:
        """The fields of the webhook."""
        return self.configuration.webhooks[self.index]

    @property
    def key(self) -> WebhookKey:
        """What no other webhook has."""
        return self.configuration.title, self.index

    @property
    def is_mutating(self) -> bool:
        """Whether it changes objects."""
        return self.configuration.kind == "MutatingWebhookConfiguration"

    @property
    def fails_closed(self) -> bool:
        """Whether a request fails when this webhook cannot be called."""
        return self.webhook.failure_policy == "Fail"

    @property
    def service(self) -> ServiceReference | None:
        """The Service to call; None if the webhook has a URL."""
        return self.webhook.client_config.service

    @property
    def path(self) -> str:
        """The path of the webhook in the configuration."""
        return f"webhooks[name={self.webhook.name}]"


@dataclass(slots=True)
class ClusterState:
    """The objects by kind; `complete` are the kinds of which all objects were read.

    Of other kinds, there may be objects that were not read.
    """

    complete: frozenset[tuple[str, str]] = frozenset()
    _objects: dict[tuple[str, str], dict[tuple[str, str], ClusterObject]] = field(
        default_factory=dict
    )
    _in_namespace: dict[tuple[str, str], list[ClusterObject]] = field(default_factory=dict)
    _selected: dict[tuple[int, str], tuple[LabelSelector, bool]] = field(default_factory=dict)

    def add(self, group: str, object: ClusterObject) -> None:
        """Add one object of an API group."""
        metadata = object.metadata
        of_kind = self._objects.setdefault((group, object.kind), {})
        of_kind[metadata.namespace, metadata.name] = object
        self._in_namespace.setdefault((object.kind, metadata.namespace), []).append(object)

    def all(self, model: type[READ], *kinds: str) -> list[READ]:
        """Return the objects of a model, limited to `kinds` if any are given."""
        named = [
            key for key, each in MODELS.items() if each is model and (not kinds or key[1] in kinds)
        ]
        return [
            object
            for key in named
            for object in self._objects.get(key, {}).values()
            if isinstance(object, model)
        ]

    def within(self, model: type[READ], namespace: str) -> list[READ]:
        """Return the objects of a model in a namespace."""
        kinds = [kind for (_, kind), each in MODELS.items() if each is model]
        return [
            object
            for kind in kinds
            for object in self._in_namespace.get((kind, namespace), [])
            if isinstance(object, model)
        ]

    def find(self, group: str, kind: str, namespace: str, name: str) -> ClusterObject | None:
        """Return an object by name."""
        return self._objects.get((group, kind), {}).get((namespace, name))

    @property
    def is_live(self) -> bool:
        """Whether these are the objects of a cluster, and not of files."""
        return bool(self.complete)

    def knows(self, group: str, kind: str) -> bool:
        """Return whether all objects of a kind were read."""
        return (group, kind) in self.complete

    def foreign(self) -> Iterator[models.ForeignPolicy]:
        """Yield the policies and exceptions of Kyverno, Gatekeeper and Gatewright."""
        for of_kind in self._objects.values():
            yield from (each for each in of_kind.values() if isinstance(each, models.ForeignPolicy))

    def registered(self) -> list[Registered]:
        """Return every webhook, in the order in which the API server calls them."""
        configurations = sorted(self.all(WebhookConfiguration), key=lambda each: each.metadata.name)
        return [
            Registered(configuration, index)
            for configuration in configurations
            for index in range(len(configuration.webhooks))
        ]

    def mutating(self) -> dict[str, list[Registered]]:
        """Return the mutating webhooks of each resource that rules name, in their order."""
        groups: dict[str, list[Registered]] = {}
        for each in self.registered():
            names = {
                f"{resource}.{group}" if group else resource
                for rule in each.webhook.rules
                for group in rule.api_groups
                for resource in rule.resources
            }
            for name in names if each.is_mutating else ():
                groups.setdefault(name, []).append(each)
        return dict(sorted(groups.items()))

    def service(self, reference: ServiceReference) -> ClusterService | None:
        """Return a Service by name."""
        found = self.find("", "Service", reference.namespace, reference.name)
        return found if isinstance(found, ClusterService) else None

    def serving(self, reference: ServiceReference) -> list[ServingWorkload]:
        """Return the workloads whose pods a Service selects."""
        service = self.service(reference)
        if service is None or not service.spec.selector:
            return []
        selector = service.spec.selector.items()
        return [
            each
            for each in self.within(ServingWorkload, reference.namespace)
            if selector <= each.spec.template.metadata.labels.items()
        ]

    def namespace_labels(self, namespace: str) -> Labels:
        """Return the labels of a namespace, with the one that the API server sets."""
        found = self.find("", "Namespace", "", namespace)
        labels = found.metadata.labels if found else {}
        return {**labels, "kubernetes.io/metadata.name": namespace}

    def selects(self, selector: LabelSelector, namespace: str) -> bool:
        """Return whether a namespaceSelector selects a namespace."""
        key = (id(selector), namespace)
        if key not in self._selected:
            labels = self.namespace_labels(namespace)
            # Store the selector too: its id is unique only while it exists.
            self._selected[key] = selector, compile_selector(selector)(labels)
        return self._selected[key][1]


def read_state(
    documents: Iterable[Document], complete: Collection[tuple[str, str]] = ()
) -> tuple[ClusterState, list[tuple[Document, str]]]:
    """Return the objects that doctor uses, and those that do not fit the schema of their kind."""
    state = ClusterState(frozenset(complete))
    return state, add_documents(state, documents)


def add_documents(state: ClusterState, documents: Iterable[Document]) -> list[tuple[Document, str]]:
    """Add the objects that doctor uses; return those that do not fit the schema of their kind."""
    unread = list[tuple[Document, str]]()
    for document in documents:
        group, kind = group_kind(document.value)
        model = MODELS.get((group, kind))
        if model is None and group.endswith(FOREIGN_GROUPS):
            model = models.ForeignPolicy
        if model is None:
            continue
        try:
            state.add(group, model.model_validate(document.value))
        except ValidationError as error:
            texts = [f"{path}: {text}" for path, text in faults(model, error)]
            unread.append((document, "; ".join(texts)))
    return unread
