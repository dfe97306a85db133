"""The objects that doctor reads, with only the fields that it uses."""

from typing import Any
from urllib.parse import urlsplit

from pydantic import (
    AliasPath,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from config.api.admission import BindingSpec, KubernetesPolicySpec, ResourceRule
from config.api.match import LabelSelector
from config.api.meta import ApiModel, ObjectMeta
from config.api.rules import MatchCondition
from kube.resource import title


def at(path: str, default: Any) -> Any:
    """Return a field that is read at a path of the object."""
    return Field(default, validation_alias=AliasPath(*path.split(".")))


class FlatModel(ApiModel):
    """An object or a part of one, whose fields may be read from below it; null means absent."""

    @model_validator(mode="before")
    @classmethod
    def _has_objects_on_its_paths(cls, value: Any) -> Any:
        """Refuse what an AliasPath takes for absent: a field of something that is no object."""
        wrong: dict[tuple[int | str, ...], object] = {}
        for model_field in cls.model_fields.values():
            path = (
                model_field.validation_alias.path
                if isinstance(model_field.validation_alias, AliasPath)
                else []
            )
            here = value
            for depth, step in enumerate(path):
                if here is None:
                    break
                if not isinstance(here, dict):
                    wrong[tuple(path[:depth])] = here
                    break
                here = here.get(step)
        if wrong:
            raise ValidationError.from_exception_data(
                cls.__name__,
                [
                    {"type": "dict_type", "loc": at, "input": wrong_value}
                    for at, wrong_value in wrong.items()
                ],
            )
        return value

    @field_validator("*", mode="before")
    @classmethod
    def _null_is_default(cls, value: Any, info: ValidationInfo) -> Any:
        return cls.model_fields[info.field_name or ""].get_default() if value is None else value


class ClusterObject(ApiModel):
    """An object with metadata."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)

    @property
    def title(self) -> str:
        """Kind, namespace and name."""
        return title(self.kind, self.metadata.namespace, self.metadata.name)


class ServiceReference(ApiModel):
    """A Service to call (admissionregistration/v1, apiextensions/v1, apiregistration/v1)."""

    namespace: str
    name: str
    port: int = 443

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def server_name(self) -> str:
        """The DNS name that the API server verifies."""
        return f"{self.name}.{self.namespace}.svc"


class ClientConfig(ApiModel):
    """How the API server reaches a webhook."""

    service: ServiceReference | None = None
    url: str = ""
    ca_bundle: str = ""

    @property
    def server_name(self) -> str:
        """The DNS name or address that the API server verifies."""
        return self.service.server_name if self.service else urlsplit(self.url).hostname or ""


class AdmissionWebhook(ApiModel):
    """One webhook of a configuration; defaults as in admissionregistration.k8s.io/v1."""

    name: str
    client_config: ClientConfig = ClientConfig.model_construct()
    rules: list[ResourceRule] = Field([])
    failure_policy: str = "Fail"
    match_policy: str = "Equivalent"
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    side_effects: str = "None"
    timeout_seconds: int = 10
    match_conditions: list[MatchCondition] = Field([])
    reinvocation_policy: str = "Never"


class WebhookConfiguration(ClusterObject):
    """A ValidatingWebhookConfiguration or a MutatingWebhookConfiguration."""

    webhooks: list[AdmissionWebhook] = Field([])


class ServicePort(ApiModel):
    """A port of a Service or of an EndpointSlice."""

    name: str = ""
    port: int = 0


class ClusterService(FlatModel, ClusterObject):
    """A Service."""

    selector: dict[str, str] = at("spec.selector", {})
    ports: list[ServicePort] = at("spec.ports", [])
    type: str = at("spec.type", "ClusterIP")
    cluster_ip: str = at("spec.clusterIP", "")


class SliceEndpoint(FlatModel):
    """One address of an EndpointSlice; an unset `ready` counts as true (discovery/v1)."""

    ready: bool = at("conditions.ready", True)
    node_name: str = ""


class EndpointSlice(FlatModel, ClusterObject):
    """The endpoints of a Service, which the label `kubernetes.io/service-name` names."""

    endpoints: list[SliceEndpoint] = Field([])
    ports: list[ServicePort] = Field([])


class TlsSecret(FlatModel, ClusterObject):
    """The certificates of a Secret, without any key."""

    certificate: str = Field("", validation_alias=AliasPath("data", "tls.crt"))
    authority: str = Field("", validation_alias=AliasPath("data", "ca.crt"))


class SecretVolume(FlatModel):
    """A volume, with the name of its Secret, if it is of one."""

    secret_name: str = at("secret.secretName", "")


class ServingWorkload(FlatModel, ClusterObject):
    """A Deployment, StatefulSet or DaemonSet; a DaemonSet has no number of replicas."""

    replicas: int = at("spec.replicas", 1)
    labels: dict[str, str] = at("spec.template.metadata.labels", {})
    volumes: list[SecretVolume] = at("spec.template.spec.volumes", [])
    priority_class: str = at("spec.template.spec.priorityClassName", "")

    @property
    def has_replicas(self) -> bool:
        """Whether its number of pods is set, not that of the nodes."""
        return self.kind != "DaemonSet"


class Autoscaler(FlatModel, ClusterObject):
    """A HorizontalPodAutoscaler."""

    target_kind: str = at("spec.scaleTargetRef.kind", "")
    target_name: str = at("spec.scaleTargetRef.name", "")
    minimum: int = at("spec.minReplicas", 1)


class DisruptionBudget(FlatModel, ClusterObject):
    """A PodDisruptionBudget."""

    selector: LabelSelector | None = at("spec.selector", None)


class ServedVersion(ApiModel):
    """A version of a CustomResourceDefinition."""

    name: str
    served: bool = True
    storage: bool = False


class ResourceDefinition(FlatModel, ClusterObject):
    """A CustomResourceDefinition."""

    group: str = at("spec.group", "")
    plural: str = at("spec.names.plural", "")
    versions: list[ServedVersion] = at("spec.versions", [])
    stored: list[str] = at("status.storedVersions", [])
    conversion: str = at("spec.conversion.strategy", "None")
    converter: ClientConfig = at("spec.conversion.webhook.clientConfig", ClientConfig())

    @property
    def is_converted(self) -> bool:
        """Whether a webhook converts its objects: it is not called for a single version."""
        used = {each.name for each in self.versions if each.served or each.storage}
        return self.conversion == "Webhook" and len(used.union(self.stored)) > 1


class ApiService(FlatModel, ClusterObject):
    """An APIService: an aggregated API, if it names a Service."""

    group: str = at("spec.group", "")
    version: str = at("spec.version", "")
    service: ServiceReference | None = at("spec.service", None)
    ca_bundle: str = at("spec.caBundle", "")
    is_unverified: bool = at("spec.insecureSkipTLSVerify", False)


class ClusterPolicy(ClusterObject):
    """A ValidatingAdmissionPolicy or a MutatingAdmissionPolicy."""

    spec: KubernetesPolicySpec = KubernetesPolicySpec.model_construct()


class ClusterBinding(ClusterObject):
    """The binding of an admission policy."""

    spec: BindingSpec
