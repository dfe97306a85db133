"""The objects that doctor reads, with only the fields that it uses."""

from pydantic import Field

from config.api.admission import BindingSpec, KubernetesPolicySpec, ResourceRule
from config.api.match import LabelSelector
from config.api.meta import ApiModel, ObjectMeta
from config.api.rules import MatchCondition


class ClusterObject(ApiModel):
    """An object with metadata."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)

    @property
    def title(self) -> str:
        """Kind, namespace and name."""
        within = f"{self.metadata.namespace}/" if self.metadata.namespace else ""
        return f"{self.kind} {within}{self.metadata.name}"


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


class ServiceSpec(ApiModel):
    """The spec of a Service."""

    selector: dict[str, str] = Field({})
    ports: list[ServicePort] = Field([])
    type: str = "ClusterIP"
    cluster_ip: str = Field("", alias="clusterIP")


class ClusterService(ClusterObject):
    """A Service."""

    spec: ServiceSpec = ServiceSpec.model_construct()


class EndpointConditions(ApiModel):
    """The state of an endpoint; an unset `ready` counts as true (discovery/v1)."""

    ready: bool = True


class SliceEndpoint(ApiModel):
    """One address of an EndpointSlice."""

    conditions: EndpointConditions = EndpointConditions.model_construct()
    node_name: str = ""


class EndpointSlice(ClusterObject):
    """The endpoints of a Service, which the label `kubernetes.io/service-name` names."""

    endpoints: list[SliceEndpoint] = Field([])
    ports: list[ServicePort] = Field([])


class PublicCertificate(ApiModel):
    """The public part of a TLS Secret."""

    certificate: str = Field("", alias="tls.crt")
    authority: str = Field("", alias="ca.crt")


class TlsSecret(ClusterObject):
    """A Secret, without any key."""

    data: PublicCertificate = PublicCertificate.model_construct()


class ServedVersion(ApiModel):
    """A version of a CustomResourceDefinition."""

    name: str
    served: bool = True


class WebhookConversion(ApiModel):
    """The webhook of a conversion."""

    client_config: ClientConfig = ClientConfig.model_construct()


class CrdConversion(ApiModel):
    """How a CustomResourceDefinition converts between its versions."""

    strategy: str = "None"
    webhook: WebhookConversion = WebhookConversion.model_construct()


class ResourceNames(ApiModel):
    """The names of a custom resource."""

    plural: str


class DefinitionSpec(ApiModel):
    """The spec of a CustomResourceDefinition."""

    group: str
    names: ResourceNames
    versions: list[ServedVersion] = Field([])
    conversion: CrdConversion = CrdConversion.model_construct()


class ResourceDefinition(ClusterObject):
    """A CustomResourceDefinition."""

    spec: DefinitionSpec


class ApiServiceSpec(ApiModel):
    """The spec of an APIService."""

    group: str = ""
    version: str = ""
    service: ServiceReference | None = None
    ca_bundle: str = ""
    insecure_skip_tls_verify: bool = Field(False, alias="insecureSkipTLSVerify")


class ApiService(ClusterObject):
    """An APIService: an aggregated API, if it names a Service."""

    spec: ApiServiceSpec = ApiServiceSpec.model_construct()


class ClusterPolicy(ClusterObject):
    """A ValidatingAdmissionPolicy or a MutatingAdmissionPolicy."""

    spec: KubernetesPolicySpec = KubernetesPolicySpec.model_construct()


class ClusterBinding(ClusterObject):
    """The binding of an admission policy."""

    spec: BindingSpec


class ForeignPolicy(ClusterObject):
    """A policy or an exception of Kyverno, Gatekeeper or Gatewright."""

    spec: dict[str, object] = Field({})
