"""A server of one instance: its StatefulSet with a volume, its Secret and its Services.

The database of type mysql and the queue are such servers. The names of the Secret and of the claims
contain the software, and the claims outlive the server. So a server of other software that replaces
it never uses them, and after a change back it finds its own volumes again.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from config.api.core import QuantityText, ResourceRequirements
from config.quantities import MILLI
from controller.reconcilers.claims import (
    Requested,
    amount,
    keep_claim,
    largest,
    new_template,
    origin,
    volumes,
    without_class,
)
from controller.reconcilers.component import Component, ComponentsParent
from controller.reconcilers.images import image
from controller.reconcilers.indexes import by_label
from controller.reconcilers.labels import metadata_origin
from controller.reconcilers.readiness import rolled_out
from controller.reconcilers.removal import removal
from controller.reconcilers.requirements import complete_requirements
from controller.reconcilers.resources import CLAIM, STATEFUL_SET
from controller.reconcilers.software import LABEL, MANAGED, SOFTWARE_LABEL, Software, versions
from controller.runtime.kind import Reads
from controller.runtime.plan import Apply, CreateOnly, Observed, Random, Write
from kube.resource import JsonObject

GIBI = 2**30 * MILLI  # in thousandths of a byte
SERVERS = frozenset({"mysql", "nats", "rabbitmq"})
INDEX = "server"  # the name of a server, or of its backups


class ServerSettings(NamedTuple):
    """The settings of a server: the fields of its spec, and the environment's defaults."""

    version: str | None
    storage: QuantityText | None
    default_storage: str
    storage_class_name: str | None
    resources: ResourceRequirements | None
    default_resources: JsonObject
    deletion_policy: str


class Server(NamedTuple):
    """One server to run."""

    software: Software
    name: str
    namespace: str
    labels: Mapping[str, str]  # in addition to its own
    version: str
    image: str
    volume: Requested
    resources: JsonObject
    deletion_policy: str = "Retain"

    @property
    def selector(self) -> dict[str, str]:
        """The labels by which the StatefulSet and the Services select the pod."""
        return {"app": self.name}

    def metadata(self, suffix: str = "", **labels: str) -> JsonObject:
        """Return the metadata of a child; `suffix` is added to the server's name."""
        name = f"{self.name}-{suffix}" if suffix else self.name
        return {
            "name": name,
            "namespace": self.namespace,
            "labels": {**self.labels, **self.software.labels, **self.selector, **labels},
        }

    def password(self, key: str) -> JsonObject:
        """Return the reference to one of its passwords."""
        return password(self.name, self.software, key)


def password(server: str, software: Software, key: str) -> JsonObject:
    """Return the reference to a password of the server with this name."""
    return {"secretKeyRef": {"name": f"{server}-{software.name}-credentials", "key": key}}


def _by_server(claim: JsonObject) -> Iterator[str]:
    """Yield the name of the server, or of its backups, that a claim belongs to."""
    if (claim["metadata"].get("labels") or {}).get(SOFTWARE_LABEL) in SERVERS:
        yield from by_label("app")(claim)


READS_CLAIMS = Reads(
    CLAIM, {INDEX: _by_server}, ",".join("=".join(each) for each in MANAGED.items()), keep_claim
)


def by_parent(parent: JsonObject) -> Iterator[str]:
    """Yield the names of the servers that a stored AppStack or EcommercePlatform may have."""
    name = parent["metadata"]["name"]
    yield f"{name}-db"
    yield f"{name}-queue"


def claims_of(observed: Observed, name: str) -> list[JsonObject]:
    """Return the existing claims of a server, or of its backups."""
    return [
        claim
        for claim in observed.find(CLAIM, INDEX, name)
        if "deletionTimestamp" not in claim["metadata"]
    ]


def serve(
    parent: ComponentsParent,
    software: Software,
    name: str,
    settings: ServerSettings,
    pod: Callable[[Server], JsonObject],
) -> tuple[Server, Component]:
    """Return a server and its component; `pod` makes the spec of its pod."""
    observed, field = parent.observed, f"spec.{software.component}"
    stored, claims = observed.child(STATEFUL_SET, name), claims_of(observed, name)
    ready, note = rolled_out(stored, 1)
    version = versions(software, settings.version, stored, claims, is_ready=ready)
    volume = Requested(
        storage_of(settings.storage, settings.default_storage, largest(claims)),
        settings.storage_class_name,
        {**parent.labels, **version.labels},
        field,
    )
    server = Server(
        software=software,
        name=name,
        namespace=parent.namespace,
        labels=parent.child_labels(software.component),
        version=version.server,
        image=image(observed.settings, software.name, version.server + software.image_suffix),
        volume=volume,
        resources=complete_requirements(settings.resources, settings.default_resources),
        deletion_policy=settings.deletion_policy,
    )
    template = new_template(software.name, volume, server.metadata()["labels"])
    kept = volumes(volume, stored, template, claims, observed)
    left = removal(settings.deletion_policy, stored, claims, is_deleting=parent.is_deleting)
    writes = [*_writes(server, kept.template, pod(server), stored), *kept.patches, *left.writes]
    wrong = version.wrong or next(iter(kept.problems), None)
    without_volume = without_class(claims, observed)
    component = Component(
        software.component,
        writes,
        ready=ready and not without_volume,
        note=without_volume or note,
        finalized=left.finalized,
    )
    return server, component if wrong is None else component.with_problem(wrong)


def _writes(
    server: Server, template: JsonObject, pod: JsonObject, stored: JsonObject | None
) -> list[Write]:
    """Return the writes for a server.

    `template` is its claim template, and `stored` its existing StatefulSet.
    """
    software = server.software
    about = software.metadata_origin
    metadata = server.metadata(f"{software.name}-credentials")
    credentials = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata}
    headless = {"clusterIP": "None", "publishNotReadyAddresses": True}
    return [
        CreateOnly(
            credentials,
            {f"data.{key}": Random(32) for key in software.passwords},
            origin={path: field for path, field in about.items() if path != "spec"},
        ),
        Apply(_stateful_set(server, template, pod, stored), _origin(software)),
        Apply(_service(server, server.metadata("headless"), headless), about),
        Apply(_service(server, server.metadata(), {}), about),
    ]


def _origin(software: Software) -> dict[str, str]:
    container = f"spec.template.spec.containers[name={software.name}]"
    field = f"spec.{software.component}"
    return {
        **metadata_origin("spec.template", own=software.labels),
        **software.label_origins("spec.template.", "spec.volumeClaimTemplates[0]."),
        f"metadata.labels[{LABEL}]": f"{field}.version",
        f"{container}.image": f"{field}.version",
        f"{container}.resources": f"{field}.resources",
        **origin(
            f"{field}.storage", f"{field}.storageClassName", at="spec.volumeClaimTemplates[0]."
        ),
        "spec.persistentVolumeClaimRetentionPolicy.whenDeleted": f"{field}.deletionPolicy",
    }


def _service(server: Server, metadata: JsonObject, more: JsonObject) -> JsonObject:
    name = server.software.port_name
    port = {"name": name, "port": server.software.port, "targetPort": name, "protocol": "TCP"}
    spec = {**more, "selector": server.selector, "ports": [port]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _stateful_set(
    server: Server, template: JsonObject, pod: JsonObject, stored: JsonObject | None
) -> JsonObject:
    metadata = server.metadata()
    # Parallel also replaces a pod that never became ready. The field is immutable: where an earlier
    # release did not set it, it stays unset.
    policy = "Parallel" if stored is None else stored["spec"].get("podManagementPolicy")
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {**metadata, "labels": {**metadata["labels"], LABEL: server.version}},
        "spec": {
            "replicas": 1,
            "serviceName": f"{server.name}-headless",
            **({"podManagementPolicy": policy} if policy == "Parallel" else {}),
            "selector": {"matchLabels": server.selector},
            "template": {"metadata": {"labels": metadata["labels"]}, "spec": pod},
            "volumeClaimTemplates": [template],
            "persistentVolumeClaimRetentionPolicy": {
                "whenDeleted": server.deletion_policy,
                "whenScaled": "Retain",
            },
        },
    }


def storage_of(storage: QuantityText | None, default: str, had: str | None) -> str:
    """Return a volume's size in whole Gi.

    The default is that of the environment; an existing volume that is larger keeps its size.
    """
    if storage is not None:
        return whole_gibi(storage)
    return whole_gibi(default if had is None or amount(had) <= amount(default) else had)


def whole_gibi(storage: int | str) -> str:
    """Return a size in whole Gi, rounded up: 1Ti is 1024Gi."""
    return f"{-(-amount(storage) // GIBI)}Gi"  # rounded up
