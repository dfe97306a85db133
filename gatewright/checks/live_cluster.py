"""Read policies, look-ups and objects of a cluster for `check` and `impact`. No writes."""

from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager

from config.documents import Document, parse_documents
from config.schemas import CustomTypes, root_type
from config.settings import Settings
from controller.audit.inventory import existing, kinds_of, look_up
from controller.audit.judge import ObjectJudge
from controller.audit.kubernetes_policies import kubernetes_policies
from controller.audit.listing import Lister, RateLimit
from controller.reconcilers.resources import CONFIG_MAP
from controller.registration.configurations import SYSTEM_NAMESPACES
from gatewright.checks.loaded_policies import PoliciesInForce
from gatewright.outputs import InputProblem, SourceLocation
from kube.client import Client
from kube.credentials import load
from kube.errors import ApiError
from kube.resource import GroupKind, title_of
from webhook.engine import SCHEMAS, BoundPolicy, Engine
from webhook.engine.kinds import Kind
from webhook.harness.manifests import JudgedManifest, judge_manifest
from webhook.known import Known
from webhook.policy_sets.bound_objects import document_of
from webhook.policy_sets.kind_names import custom_versions
from webhook.policy_sets.policy_set import is_policy_object, without_cases
from webhook.server import cluster_policies

# Label and name of the ConfigMap with the chart's policies.
OF_THE_CHART, NAMED = ("app.kubernetes.io/component=webhook", "-policies")
QPS = 50.0  # requests per second at most, like kubectl


class Live:
    """A cluster, read page by page at a bounded rate."""

    def __init__(self, client: Client, home: str) -> None:
        """Take a client of the API server, and the namespace that Gatewright is installed in."""
        self._home = home
        limit = RateLimit(QPS)
        self.lister, self._at_home = Lister(client, limit), Lister(client, limit, [home])
        self._faults: list[InputProblem] = []

    @property
    def problems(self) -> list[InputProblem]:
        """Failed reads so far, and policies of Kubernetes that cannot be evaluated."""
        unread = self._at_home.unread | self.lister.unread
        lines = dict.fromkeys(
            f"{resource.plural} cannot be listed: {error}" for resource, error in unread.items()
        )
        return [*self._faults, *map(InputProblem, lines)]

    async def policies(self) -> list[Document]:
        """Return policies and exceptions: first those of the chart, then the policy objects."""
        documents = list[Document]()
        async for object in self._at_home.objects(CONFIG_MAP, OF_THE_CHART):
            if object["metadata"]["name"].endswith(NAMED):
                for key, text in sorted((object.get("data") or {}).items()):
                    source = f"ConfigMap {self._home}/{object['metadata']['name']} {key}"
                    documents += without_cases(parse_documents(text.encode(), source))
        for resource in cluster_policies.RESOURCES:
            documents += [
                Document.of_object(document_of(object), title_of(object))
                async for object in self.lister.objects(resource)
            ]
        return documents

    async def kubernetes_policies(self) -> list[BoundPolicy]:
        """Return Kubernetes' own policies in force.

        Policies that cannot be evaluated become problems.
        """
        entries = await kubernetes_policies(self.lister, is_offline=True)
        for entry in entries:
            self._faults += [
                InputProblem(f"{path}: {text}", SourceLocation(entry.document.source))
                for path, text in entry.faults
            ]
        return [policy for each in entries for policy in each.policies]

    async def kinds(self) -> dict[tuple[str, str], Kind]:
        """Return the custom kinds that the cluster has, by group and name."""
        return {
            (resource.group, resource.kind): resource
            for resource in kinds_of(await self.lister.client.resources())
        }

    async def custom_types(self, policies: Iterable[Document]) -> CustomTypes:
        """Return the types of the custom kinds that the rules of these policy objects are about."""
        specs = (each.value.get("spec") for each in policies if is_policy_object(each.value))
        named = {version for spec in specs for version in custom_versions(spec)}
        return CustomTypes.of_openapi(await self.lister.client.schemas(sorted(named)))

    async def look_up(self, engines: Iterable[Engine]) -> Known:
        """Return the objects that the policies of these engines look up in the cluster."""
        engines = tuple(engines)
        known = await look_up(self.lister, *engines)
        kinds = {
            (target.kind.group, target.kind.kind)
            for engine in engines
            for bound in engine.policies
            if SCHEMAS in bound.needs
            for target in bound.policy.targets
        }
        known.served_types = await self._types(kinds)
        return known

    async def _types(self, kinds: Collection[GroupKind]) -> CustomTypes:
        """Return the types of custom kinds."""
        if not kinds:
            return CustomTypes()
        client = self.lister.client
        versions = {
            resource.api_version
            for resource in await client.resources()
            if (resource.group, resource.kind) in kinds
            and not root_type(resource.api_version, resource.kind)
        }
        return CustomTypes.of_openapi(await client.schemas(sorted(versions)))

    async def judge(
        self, sets: Sequence[PoliciesInForce], known: Known
    ) -> AsyncIterator[list[JudgedManifest]]:
        """Yield the verdicts on each object that an audit by these policies would judge."""
        judges = [ObjectJudge(each.engine, known, each.now) for each in sets]
        async for existing_object in existing(
            self.lister, judges, [*SYSTEM_NAMESPACES, self._home]
        ):
            document = Document.of_object(existing_object.object)
            namespace = existing_object.object["metadata"].get("namespace", "")
            yield [
                judge_manifest(document, namespace, judge(*existing_object).outcomes)
                for judge in judges
            ]


@asynccontextmanager
async def live_cluster(
    settings: Settings, home: str, problems: list[InputProblem]
) -> AsyncIterator[Live]:
    """Enter the cluster that the settings name.

    At the end, add failed reads to the problems.
    """
    try:
        async with Client(await load(settings.kubeconfig, settings.context)) as client:
            live = Live(client, home)
            yield live
            problems += live.problems
    except ApiError as error:
        problems.append(InputProblem(f"cannot read from the API server: {error}"))
