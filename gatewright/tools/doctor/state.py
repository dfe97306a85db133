"""The objects that doctor has read, found by kind, namespace and name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeVar, cast

from pydantic import ValidationError

from config.api.match import LabelSelector
from config.documents import Document
from config.faults import faults
from gatewright.outputs import InputProblem, SourceLocation
from gatewright.tools.doctor import models
from gatewright.tools.doctor.foreign import ForeignPolicy
from gatewright.tools.doctor.models import (
    AdmissionWebhook,
    ClusterObject,
    ClusterService,
    EndpointSlice,
    ServiceReference,
    ServingWorkload,
    WebhookConfiguration,
)
from kube.resource import group_kind, title_of
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
    ("policy", "PodDisruptionBudget"): models.DisruptionBudget,
    ("apps", "Deployment"): ServingWorkload,
    ("apps", "StatefulSet"): ServingWorkload,
    ("apps", "DaemonSet"): ServingWorkload,
    ("autoscaling", "HorizontalPodAutoscaler"): models.Autoscaler,
}
SERVICE_LABEL = "kubernetes.io/service-name"  # of an EndpointSlice
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
    def name(self) -> str:
        """Its name."""
        return self.webhook.name

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
        return f"webhooks[name={self.name}]"

    @property
    def pointer(self) -> str:
        """Its JSON pointer in the configuration."""
        return f"/webhooks/{self.index}"


@dataclass(slots=True)
class ClusterState:
    """The objects by kind; `complete` are the kinds of which all objects were listed.

    Of other kinds, and of those that are `unread`, there may be objects that were not read.
    """

    complete: frozenset[tuple[str, str]] = frozenset()
    unread: set[tuple[str, str]] = field(default_factory=set)
    _by_name: dict[tuple[str, str, str, str], ClusterObject] = field(default_factory=dict)
    _by_kind: dict[tuple[str, str], list[ClusterObject]] = field(default_factory=dict)
    _within: dict[tuple[type, str], list[ClusterObject]] = field(default_factory=dict)
    _labelled: dict[tuple[str, str, str], list[ServingWorkload]] = field(default_factory=dict)
    _selected: dict[tuple[int, str], tuple[LabelSelector, bool]] = field(default_factory=dict)

    def add(self, group: str, object: ClusterObject) -> None:
        """Add one object of an API group; the first of a name counts."""
        metadata, place = object.metadata, object.metadata.namespace
        if isinstance(object, EndpointSlice):
            place += f"/{metadata.labels.get(SERVICE_LABEL)}"
        key = group, object.kind, metadata.namespace, metadata.name
        if key not in self._by_name:
            self._by_name[key] = object
            self._by_kind.setdefault((group, object.kind), []).append(object)
            self._within.setdefault((type(object), place), []).append(object)
            if isinstance(object, ServingWorkload):
                for item in object.labels.items():
                    self._labelled.setdefault((metadata.namespace, *item), []).append(object)

    def read(self, documents: Iterable[Document]) -> list[InputProblem]:
        """Add the objects that doctor uses; return the problems of malformed ones."""
        problems = list[InputProblem]()
        for document in documents:
            group, kind = group_kind(document.value)
            model = _model_of(group, kind)
            if not all(isinstance(document.value.get(e), str) for e in ("apiVersion", "kind")):
                model = ClusterObject  # which refuses it
            if model is None:
                continue
            try:
                self.add(group, model.model_validate(document.value))
            except ValidationError as error:
                self.unread.add((group, kind))
                wrong = faults(model, error)
                texts = [f"{path}: {text}" for path, text in wrong]
                if kind == "Secret":  # without the values
                    texts = [f"{path}: {text.rpartition(': ')[2]}" for path, text in wrong]
                message = f"{title_of(document.value)} cannot be read: {'; '.join(texts)}"
                place = SourceLocation(document.source, *document.place(wrong[0][0]))
                problems.append(InputProblem(message, place))
        return problems

    def all(self, model: type[READ]) -> list[READ]:
        """Return the objects of a model."""
        kinds = (each for each in self._by_kind.values() if type(each[0]) is model)
        return cast("list[READ]", list(chain(*kinds)))

    def of_kind(self, group: str, kind: str) -> list[ClusterObject]:
        """Return the objects of a kind."""
        return self._by_kind.get((group, kind), [])

    def within(self, model: type[READ], place: str) -> list[READ]:
        """Return the objects of a model in a namespace, or the EndpointSlices of a Service."""
        return cast("list[READ]", self._within.get((model, place), []))

    def find(self, group: str, kind: str, namespace: str, name: str) -> ClusterObject | None:
        """Return an object by name."""
        return self._by_name.get((group, kind, namespace, name))

    @property
    def is_live(self) -> bool:
        """Whether these are the objects of a cluster, and not of files."""
        return bool(self.complete)

    def knows(self, group: str, kind: str) -> bool:
        """Return whether all objects of a kind were read."""
        return (group, kind) in self.complete and (group, kind) not in self.unread

    def registered_webhooks(self) -> list[Registered]:
        """Return every webhook with rules, in the order in which the API server calls them."""
        return [
            Registered(configuration, index)
            for configuration in sorted(self.all(WebhookConfiguration), key=_name)
            for index, webhook in enumerate(configuration.webhooks)
            if webhook.rules
        ]

    def service(self, reference: ServiceReference) -> ClusterService | None:
        """Return a Service by name."""
        service = self.find("", "Service", reference.namespace, reference.name)
        return cast("ClusterService | None", service)

    def serving(self, reference: ServiceReference) -> list[ServingWorkload]:
        """Return the workloads whose pods a Service selects."""
        service = self.service(reference)
        if service is None or not service.selector:
            return []
        wanted = service.selector.items()
        labelled = (self._labelled.get((reference.namespace, *item), []) for item in wanted)
        return [each for each in min(labelled, key=len) if wanted <= each.labels.items()]

    def select_workloads(self, namespace: str, selector: LabelSelector) -> list[ServingWorkload]:
        """Return the workloads in a namespace whose pods a selector selects."""
        labelled = (
            self._labelled.get((namespace, *item), []) for item in selector.match_labels.items()
        )
        workloads = min(labelled, key=len, default=self.within(ServingWorkload, namespace))
        selects = compile_selector(selector)
        return [each for each in workloads if selects(each.labels)]

    def namespace_labels(self, namespace: str) -> Labels:
        """Return the labels of a namespace, with the one that the API server sets."""
        object = self.find("", "Namespace", "", namespace)
        labels = object.metadata.labels if object else {}
        return {**labels, "kubernetes.io/metadata.name": namespace}

    def selects(self, selector: LabelSelector, namespace: str) -> bool:
        """Return whether a namespaceSelector selects a namespace."""
        key = (id(selector), namespace)
        if key not in self._selected:
            labels = self.namespace_labels(namespace)
            # Store the selector too: its id is unique only while it exists.
            self._selected[key] = selector, compile_selector(selector)(labels)
        return self._selected[key][1]


def is_read(object: Mapping[str, Any]) -> bool:
    """Return whether doctor uses objects of this kind."""
    return _model_of(*group_kind(object)) is not None


def _model_of(group: str, kind: str) -> type[ClusterObject] | None:
    is_foreign = group.endswith(FOREIGN_GROUPS)
    return MODELS.get((group, kind), ForeignPolicy if is_foreign else None)


def _name(object: ClusterObject) -> str:
    return object.metadata.name
