"""Read from a cluster for `check`: policies, their look-ups, and the objects they judge. It writes nothing."""

from collections.abc import AsyncIterator, Mapping, Sequence

from config.documents import Document, parse_documents
from controller.audit.inventory import NAMESPACE, look_ups_of, objects, resource_named, served
from controller.audit.kubernetes_policies import kubernetes_policies
from controller.audit.listing import Lister, RateLimit
from controller.audit.scope import Scope
from controller.registration.configurations import SYSTEM_NAMESPACES
from gatewright.outputs import Place, Problem
from gatewright.sources import Sources
from kube.client import Client, Object
from kube.errors import ApiError, Forbidden, NotFound
from kube.resource import Resource
from webhook.engine import BoundPolicy, Engine
from webhook.engine.planners import Served
from webhook.engine.policy_set import document_of
from webhook.engine.rules import Native
from webhook.harness.known import Known, Labels, identity
from webhook.harness.objects import is_whole
from webhook.server import policy_objects

CONFIG_MAP = Resource("", "v1", "configmaps", "ConfigMap")
OF_THE_CHART, NAMED = "app.kubernetes.io/component=webhook", "-policies"  # the ConfigMap of the chart's policies
QPS = 50.0  # requests a second at most, as kubectl


class Live:
    """A cluster, read page by page at a bounded rate. What cannot be read is among `problems`."""

    def __init__(self, client: Client, home: str) -> None:
        """Take a client of the API server, and the namespace that Gatewright is installed in."""
        self.problems: list[Problem] = []
        self._home = home
        limit = RateLimit(QPS)
        self._lister, self._at_home = Lister(client, limit), Lister(client, limit, [home])

    async def policies(self) -> list[Document]:
        """Return policies and exceptions: those of the chart, then the policy objects."""
        found = list[Document]()
        for each in await self._all(CONFIG_MAP, self._at_home, OF_THE_CHART):
            if each["metadata"]["name"].endswith(NAMED):
                for key, text in sorted((each.get("data") or {}).items()):
                    source = f"ConfigMap {self._home}/{each['metadata']['name']} {key}"
                    found += parse_documents(text.encode(), source)
        for resource in policy_objects.RESOURCES:
            each_of_them = await self._all(resource, self._lister)
            found += [Document.of_object(document_of(each), _title(each)) for each in each_of_them]
        return found

    async def kubernetes_policies(self) -> list[BoundPolicy]:
        """Return Kubernetes' own policies in force; those that cannot be evaluated are among the problems."""
        found = list[Native]()
        for mutating in (True, False):  # who may not read the mutating ones may still read the others
            try:
                found = await kubernetes_policies(self._lister, mutating=mutating)
                break
            except Forbidden as error:
                self._refused("Kubernetes' own policies", error)
        for each in found:
            self.problems += [Problem(f"{path}: {text}", Place(each.document.source)) for path, text in each.faults]
        return [policy for each in found for policy in each.policies]

    async def context(self, *engines: Engine) -> list[Object]:
        """Return all namespaces, and whatever the engines' policies look up."""
        kinds = {kind for look_up in look_ups_of(*engines).values() for kind in look_up.kinds}
        resources = [NAMESPACE, *map(resource_named, sorted(kinds))]
        return [each for resource in resources for each in await self._all(resource, self._lister)]

    async def served(self, engine: Engine) -> Served:
        """Return which of the APIs that the controller can do without the cluster has."""
        return await served(self._lister, engine)

    async def objects(self, *engines: Engine) -> AsyncIterator[tuple[Document, bool]]:
        """Yield every object that an audit by these engines judges, and whether its owner answers for it."""
        scope = Scope(engines, [*SYSTEM_NAMESPACES, self._home])
        async for kind, each in objects(self._lister, scope, lambda kind, error: self._refused(kind.plural, error)):
            yield Document.of_object(each), scope.is_owned(kind, each)

    async def _all(self, resource: Resource, lister: Lister, labels: str | None = None) -> list[Object]:
        """Return all objects of a resource; none where the cluster does not have it."""
        try:
            return [each async for each in lister.objects(resource, labels=labels)]
        except NotFound:
            return []
        except Forbidden as error:
            self._refused(resource.plural, error)
            return []

    def _refused(self, plural: str, error: ApiError) -> None:
        self.problems.append(Problem(f"{plural} cannot be listed: {error}"))


def known_of(sources: Sources, context: Sequence[Object], namespace: str, labels: Mapping[str, Labels]) -> Known:
    """Return what is known when manifests are judged: themselves over the `context` of a cluster, if there is one.

    `labels` are those of namespaces, over the cluster's; objects without a namespace are in `namespace`.
    """
    manifests = [each.value for each in sources.documents if is_whole(each)]
    replaced = {identity(each, namespace) for each in manifests}
    others = (each for each in context if each["kind"] != NAMESPACE.kind)
    beside = [each for each in others if identity(each, namespace) not in replaced]
    namespaces = [each for each in context if each["kind"] == NAMESPACE.kind]
    return Known([*beside, *manifests], namespace, labels, namespaces)


def _title(object: Object) -> str:
    metadata = object["metadata"]
    namespace = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{object['kind']} {namespace}{metadata['name']}"
