"""Read from a cluster for `check`: policies, their look-ups, and the objects they judge. It writes nothing."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

import yaml

from config.documents import Document, parse_documents
from gatewright.outputs import Problem
from gatewright.planning import optional_resources
from gatewright.sources import Sources
from kube.client import Client, Object
from kube.errors import Forbidden, Gone, NotFound
from kube.resource import Resource
from kube.store import controller_of
from webhook.engine import Engine
from webhook.engine.kinds import Kind
from webhook.engine.look_ups import LOOK_UPS
from webhook.engine.planners import Served
from webhook.engine.policy_set import document_of
from webhook.harness.known import Known, Labels, identity
from webhook.harness.objects import is_whole
from webhook.server import look_ups, policy_objects

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
OF_THE_CHART, NAMED = "app.kubernetes.io/component=webhook", "-policies"  # the ConfigMap of the chart's policies
BURST, PAGES_PER_SECOND = 50, 10  # how many pages come at once, and how many after those
MAX_LISTS = 3  # attempts to list one kind when its continue token expires


class Live:
    """A cluster, read page by page at a bounded rate. What cannot be read is among `problems`."""

    def __init__(self, client: Client) -> None:
        """Take a client of the API server."""
        self.problems: list[Problem] = []
        self._client = client
        self._pages = 0

    async def policies(self, home: str) -> list[Document]:
        """Return policies and exceptions: those of the chart in the namespace `home`, then the policy objects."""
        found = list[Document]()
        for each in await self._all(CONFIG_MAPS, home, labels=OF_THE_CHART):
            if each["metadata"]["name"].endswith(NAMED):
                for key, text in sorted((each.get("data") or {}).items()):
                    source = f"ConfigMap {home}/{each['metadata']['name']} {key}"
                    found += parse_documents(text.encode(), source)
        for resource in policy_objects.RESOURCES:
            found += [_document(document_of(each), _title(each)) for each in await self._all(resource)]
        return found

    async def context(self, *engines: Engine) -> list[Object]:
        """Return all namespaces, and whatever the engines' policies look up."""
        needed = {name for engine in engines for bound in engine.policies for name in bound.needs}
        kinds = {kind for name, each in LOOK_UPS.items() if name in needed for kind in each.kinds}
        resources = [NAMESPACES, *(each for each in look_ups.RESOURCES if each.kind in kinds)]
        return [each for resource in resources for each in await self._all(resource)]

    async def served(self) -> Served:
        """Return which of the APIs that the controller can do without the cluster has."""
        found = [each for each in optional_resources() if await self._client.serves(each)]
        return frozenset((each.group, each.plural) for each in found)

    async def objects(self, *engines: Engine) -> AsyncIterator[Document]:
        """Yield every object that policies judge when it is created; what another judged object owns is left out."""
        kinds = dict.fromkeys(kind for engine in engines for kind in judged_kinds(engine))
        owners = {(kind.group, kind.kind) for kind in kinds}
        for kind in kinds:
            for each in await self._all(_resource(kind)):
                metadata, owner = each["metadata"], controller_of(each["metadata"])
                is_owned = owner is not None and _group_kind(metadata, owner.uid) in owners
                if not is_owned and "deletionTimestamp" not in metadata:
                    metadata.pop("managedFields", None)
                    yield _document(each)

    async def _all(self, resource: Resource, namespace: str | None = None, labels: str | None = None) -> list[Object]:
        """Return all objects of a resource; none where the cluster does not have it."""
        for _ in range(MAX_LISTS):
            found = list[Object]()
            try:
                async for page in self._client.pages(resource, namespace, labels=labels):
                    found += page["items"]
                    self._pages += 1
                    await asyncio.sleep(0 if self._pages < BURST else 1 / PAGES_PER_SECOND)
                return found
            except NotFound:
                return []
            except Gone:
                continue
            except Forbidden as error:
                self.problems.append(Problem(f"{resource.plural} cannot be listed: {error}"))
                return []
        self.problems.append(Problem(f"{resource.plural}: the list expired {MAX_LISTS} times while it was read"))
        return []


def known_of(sources: Sources, context: Sequence[Object], namespace: str, labels: Mapping[str, Labels]) -> Known:
    """Return what is known when manifests are judged: themselves over the `context` of a cluster, if there is one.

    `labels` are those of namespaces, over the cluster's; objects without a namespace are in `namespace`.
    """
    manifests = [each.value for each in sources.documents if is_whole(each)]
    own = {
        each["metadata"]["name"]: each["metadata"].get("labels") or {}
        for each in context
        if each["kind"] == NAMESPACES.kind
    }
    replaced = {identity(each, namespace) for each in manifests}
    others = (each for each in context if each["kind"] != NAMESPACES.kind)
    beside = [each for each in others if identity(each, namespace) not in replaced]
    return Known([*beside, *manifests], namespace, {**own, **labels})


def judged_kinds(engine: Engine) -> list[Kind]:
    """Return the kinds whose objects some policy judges on CREATE."""
    found = [target for fails in (True, False) for target in engine.targets(mutating=False, fails_closed=fails)]
    return list(dict.fromkeys(each.kind for each in found if not each.subresource and "CREATE" in each.operations))


def _resource(kind: Kind) -> Resource:
    return Resource(kind.group, kind.versions[-1], kind.plural, kind.kind, kind.namespaced)


def _group_kind(metadata: Object, uid: str) -> tuple[str, str]:
    owner = next(each for each in metadata["ownerReferences"] if each["uid"] == uid)
    return str(owner["apiVersion"]).rpartition("/")[0], str(owner["kind"])


def _document(object: Object, source: str = "") -> Document:
    """Return an object as a document without lines, and without a file."""
    return Document(source, object, yaml.ScalarNode("", ""), is_exact=False)


def _title(object: Object) -> str:
    metadata = object["metadata"]
    namespace = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{object['kind']} {namespace}{metadata['name']}"
