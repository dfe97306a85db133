"""Read the objects for doctor from a cluster, and probe servers for certificates. No writes."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable

from config.documents import Document
from controller.audit.listing import Lister
from controller.reconcilers.resources import SECRET
from gatewright.outputs import InputProblem
from gatewright.tools.doctor.callers import callers
from gatewright.tools.doctor.issuers import ISSUERS
from gatewright.tools.doctor.models import ClusterObject, ClusterPolicy
from gatewright.tools.doctor.state import FOREIGN_GROUPS, MODELS, ClusterState
from kube.errors import ApiError, NotFound
from kube.resource import JsonObject, Resource

PROBE_SECONDS = 5.0
PUBLIC = ("tls.crt", "ca.crt")  # what is kept of a Secret: no key
BY_NAME = "Secret"  # never listed: only Secrets that serving pods mount are read

ServerAddress = tuple[str, int, str]  # address, port, and the server name


class ClusterReader:
    """Reads one cluster; failed reads become problems or notes."""

    def __init__(self, lister: Lister) -> None:
        """Read by this lister."""
        self.problems: list[InputProblem] = []
        self.notes: list[str] = []
        self._lister = lister
        self._resources: tuple[Resource, ...] = ()

    async def read(self) -> ClusterState:
        """Return all objects that the credentials may read."""
        self._resources = await self._lister.client.resources()
        read = {(each.group, each.kind): each for each in self._resources if _is_read(each)}
        documents = [
            Document.of_object(object)
            for resource in read.values()
            async for object in self._objects(resource)
        ]
        for resource, error in self._lister.unread.items():
            self.problems.append(InputProblem(f"{resource.plural} cannot be listed: {error}"))
        unread = {(each.group, each.kind) for each in self._lister.unread}
        state = ClusterState(frozenset(read), unread)
        self.problems += state.read(documents)
        self.problems += state.read([Document.of_object(e) async for e in self._secrets(state)])
        await self._add_params(state)
        return state

    async def _objects(self, resource: Resource) -> AsyncIterator[JsonObject]:
        async for object in self._lister.objects(resource):
            yield object | {"apiVersion": resource.api_version, "kind": resource.kind}

    async def _add_params(self, state: ClusterState) -> None:
        """Add the parameter objects of policies; only their names are used."""
        kinds = {
            (kind.api_version, kind.kind)
            for policy in state.all(ClusterPolicy)
            if (kind := policy.spec.param_kind) is not None
        }
        for resource in self._resources:
            if (resource.api_version, resource.kind) not in kinds or _is_read(resource):
                continue
            async for object in self._objects(resource):
                state.add(resource.group, ClusterObject.model_validate(object))
            if resource not in self._lister.unread:
                state.complete |= {(resource.group, resource.kind)}

    async def _secrets(self, state: ClusterState) -> AsyncIterator[JsonObject]:
        """Yield the certificates, without keys, of the Secrets that pods of webhooks mount."""
        services = {each.config.service for each in callers(state) if each.config.service}
        mounted = {
            (workload.metadata.namespace, name): None
            for service in services
            for workload in state.serving(service)
            for volume in workload.volumes
            if (name := volume.secret_name)
        }
        for namespace, name in mounted:
            try:
                secret = await self._lister.client.get(SECRET, name, namespace)
            except NotFound:
                continue
            except ApiError as error:
                self.notes.append(
                    f"Secret {namespace}/{name} cannot be read ({error}): its certificate is not "
                    "checked; --probe asks the server instead"
                )
                continue
            data, annotations = (
                secret.get("data") or {},
                secret["metadata"].get("annotations") or {},
            )
            yield {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {
                    "name": name,
                    "namespace": namespace,
                    "annotations": {key: annotations[key] for key in ISSUERS if key in annotations},
                },
                "data": {key: data[key] for key in PUBLIC if key in data},
            }


def _is_read(resource: Resource) -> bool:
    key = (resource.group, resource.kind)
    if key == ("", BY_NAME):
        return False
    return key in MODELS or resource.group.endswith(FOREIGN_GROUPS)


async def ask(endpoints: Iterable[ServerAddress]) -> tuple[dict[str, bytes], list[str]]:
    """Return the certificates that servers present, by server name, and the failures."""
    targets = list(endpoints)
    answers = await asyncio.gather(*map(_certificate, targets), return_exceptions=True)
    served, failed = dict[str, bytes](), list[str]()
    for (address, port, name), answer in zip(targets, answers, strict=True):
        if isinstance(answer, bytes):
            served[name] = answer
        elif isinstance(answer, OSError | TimeoutError):
            reason = str(answer) or f"no answer within {PROBE_SECONDS:g} s"
            failed.append(f"{name} cannot be asked at {address}:{port}: {reason}")
        elif isinstance(answer, BaseException):
            raise answer
    return served, failed


async def _certificate(endpoint: ServerAddress) -> bytes:
    """Return the leaf certificate that a server presents, without verifying it."""
    address, port, name = endpoint
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    async with asyncio.timeout(PROBE_SECONDS):
        _, writer = await asyncio.open_connection(address, port, ssl=context, server_hostname=name)
    try:
        connection = writer.get_extra_info("ssl_object")
        leaf: bytes = connection.getpeercert(binary_form=True)
    finally:
        writer.transport.abort()
    return ssl.DER_cert_to_PEM_cert(leaf).encode()
