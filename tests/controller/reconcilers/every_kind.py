"""Samples and larger objects of every kind, and an in-memory API server where they become ready."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from config.converters import to_stored_version
from config.defaulting import fill_crd_defaults
from config.documents import parse_documents, read_documents
from controller.reconcilers import planned_kinds
from controller.reconcilers.resources import POD
from controller.runtime.events import EVENT
from controller.runtime.kind import PlannedKind
from controller.runtime.status import ready_in
from controller.runtime.types import RetryableError, TerminalError
from gatewright.testing import ApiServer, reconcile
from kube.resource import JsonObject, Resource

CONFIG = Path(__file__).parents[3] / "config"
KINDS = {(kind.resource.api_version, kind.resource.kind): kind for kind in planned_kinds()}
NAMESPACE = "default"
REGISTRY = "registry.company.com"
PLATFORM = "a-platform"
RUNNING = {"Deployment", "StatefulSet"}
THEIRS = {"whose": "theirs"}
MORE = """
- apiVersion: database.example.com/v1
  kind: PostgreSQL
  metadata: {name: everything}
  spec:
    replicas: 2
    storageClassName: fast
    users: [{name: app}]
    databases: [{name: shop, owner: app}]
    backup: {enabled: true}
    monitoring: {enabled: true}
- apiVersion: database.example.com/v1
  kind: PostgreSQL
  metadata: {name: of-an-own-image}
  spec:
    replicas: 3
    synchronous: Required
    parameters: {work_mem: 16MB, max_connections: 200}
    image: registry.company.com/postgis:17
    users: [{name: app}]
    backup: {enabled: true}
- apiVersion: database.example.com/v1
  kind: PostgreSQL
  metadata: {name: to-a-store}
  spec: {backup: &to-a-store {enabled: true, destination: {bucket: backups, secretRef: {name: backup-store}}}}
- apiVersion: backup.example.com/v1
  kind: Backup
  metadata: {name: of-mongodb}
  spec:
    source:
      type: mongodb
      connection: {host: m, username: reader, authenticationDatabase: users, secretRef: {name: shop-db-login}}
    destination: {type: gcs, bucket: backups, secretRef: {name: backup-store}}
    serviceAccountName: backups
- apiVersion: backup.example.com/v1
  kind: Backup
  metadata: {name: drilled}
  spec:
    source: {type: postgresql, connection: {host: p, database: shop, secretRef: shop-db-login}}
    destination: {bucket: backups, endpoint: "http://minio:9000", region: eu-1, secretRef: {name: backup-store}}
    serviceAccountName: backups
    drill:
      schedule: "@weekly"
      storageClassName: fast
      image: registry.company.com/postgis:16
      queries: [{query: "SELECT true"}, {database: till, query: "SELECT true"}]
- apiVersion: backup.example.com/v1
  kind: Backup
  metadata: {name: drilled-in-gcs}
  spec:
    source: {type: postgresql, connection: {host: p, secretRef: shop-db-login}}
    destination: {type: gcs, bucket: backups, secretRef: {name: backup-store}}
    drill: {image: "postgres:17"}
- apiVersion: backup.example.com/v1
  kind: Backup
  metadata: {name: to-azure}
  spec:
    source: {type: mysql, connection: {host: m, secretRef: shop-db-login}}
    destination: {type: azure, bucket: backups, secretRef: {name: backup-store}}
    drill: {image: "mysql:8.4"}
- apiVersion: backup.example.com/v1
  kind: Backup
  metadata: {name: by-identity}
  spec:
    source: {type: mysql, connection: {host: m, secretRef: shop-db-login}}
    destination: {bucket: backups}
    drill: {image: "mariadb:11.8"}
- apiVersion: platform.example.com/v1
  kind: EcommercePlatform
  metadata: {name: with-mysql}
  spec:
    environment: production
    host: shop.example.com
    tlsSecretName: tls
    ingressClassName: nginx
    database: {type: mysql, storageClassName: fast, backup: {enabled: true}}
    queue: {type: nats, storageClassName: fast}
    backend: &workload
      image: "shop/shop:2"
      readinessPath: /ready
      env: [{name: A, value: b}, {name: EMPTY, value: ""}]
    frontend: *workload
- apiVersion: platform.example.com/v1
  kind: EcommercePlatform
  metadata: {name: of-a-class}
  spec:
    database: {storageClassName: fast}
    backend: &autoscaled
      image: "shop/shop:2"
      readinessPath: /ready
      env: [{name: A, value: b}, {name: EMPTY, value: ""}]
      autoscaling: {max: 5}
    frontend: &scaled-from-one {image: "shop/shop:2", readinessPath: /ready, autoscaling: {min: 1, max: 5}}
    services: &services
      - name: mail
        image: "shop/mail:1"
        readinessPath: /ready
        env: [{name: A, value: b}]
        dependsOn: [database, orders]
        autoscaling: {max: 5}
      - {name: orders, image: "shop/orders:1", port: 9000, readinessPath: /, replicas: 2, dependsOn: [cache]}
- apiVersion: example.com/v1
  kind: WebApp
  metadata: {name: scaled}
  spec: {replicas: 2, image: "shop/shop:2", autoscaling: {max: 5}}
- apiVersion: example.com/v1
  kind: WebApp
  metadata: {name: scaled-from-one}
  spec: {replicas: 2, image: "shop/shop:2", autoscaling: {min: 1, max: 5}}
- apiVersion: app.example.com/v1
  kind: AppStack
  metadata: {name: of-a-class}
  spec: {database: {storageClassName: fast}, backend: *autoscaled, frontend: *scaled-from-one, cache: {}, services: *services}
- apiVersion: app.example.com/v1
  kind: AppStack
  metadata: {name: to-a-store}
  spec:
    environment: production
    database: {type: mysql, storageClassName: fast, backup: *to-a-store}
    cache: {}
    queue: {storageClassName: fast}
    backend: {image: "shop/shop:2", securityContext: {runAsUser: 101}, resources: {limits: {cpu: 1}}}
- apiVersion: voting.schoolofdevops.com/v1
  kind: VoteConfig
  metadata: {name: of-an-earlier-version}
  spec: {question: Tea or coffee?, options: [{id: tea, label: Tea}, {id: coffee, label: Coffee}]}
"""


@dataclass(frozen=True)
class Case:
    """A stored object and its kind."""

    kind: PlannedKind[Any]
    object: JsonObject

    def __str__(self) -> str:
        return f"{self.kind.resource.kind}-{self.name}"

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.object["metadata"]["name"])


@cache
def cases() -> list[Case]:
    """Every sample, and the objects with more fields."""
    samples = [
        document.value
        for file in sorted((CONFIG / "samples").glob("*.yaml"))
        for document in read_documents(file)
    ]
    (more,) = parse_documents(MORE.encode(), "MORE")
    found = (fill_crd_defaults(to_stored_version(each)) for each in [*samples, *more.value])
    return [
        Case(KINDS[object["apiVersion"], object["kind"]], placed(object))
        for object in found
        if object["kind"] != "Secret"
    ]


def placed(object: JsonObject) -> JsonObject:
    """Return an object in the test's namespace, labelled as part of a platform."""
    return object | {
        "metadata": {"namespace": NAMESPACE, "labels": {"platform": PLATFORM}} | object["metadata"]
    }


class World:
    """An in-memory API server with one object, whose children become ready by themselves."""

    def __init__(self, case: Case, server: ApiServer, **metadata: Any) -> None:
        self.case = case
        self.server = server
        self.error: Exception | None = None
        self._object = case.object | {"metadata": case.object["metadata"] | metadata}

    def begin(self) -> None:
        """Create the object, and the Secrets and the StorageClass that it may refer to."""
        secret = Resource("", "v1", "secrets", "Secret")
        for name in ("shop-db-login", "backup-store"):
            self.server.create(secret, self.theirs(name))
        self.server.create(self.case.kind.resource, self._object)

    async def look(self) -> None:
        """Reconcile the object once, in a controller that has just started.

        `error` is its error or None, and `server.writes` has its writes.
        """
        self.error = None
        self.server.requests.clear()
        try:
            await reconcile(
                self.case.kind, self.server, self.case.name, NAMESPACE, registry=REGISTRY
            )
        except (TerminalError, RetryableError) as error:
            self.error = error

    def events(self) -> list[tuple[str, str, str]]:
        """All events so far, as type, reason and note."""
        return [
            (event["type"], event["reason"], event["note"])
            for event in self.server.list(EVENT, NAMESPACE)
        ]

    async def settle(self) -> JsonObject:
        """Reconcile and make the children ready, until nothing is written; return the object."""
        before = -1
        while before != self.server.storage.version:
            before = self.server.storage.version
            await self.look()
            for resource, child in self.children():
                self._make_ready(resource, child)
        return self.parent()

    def parent(self) -> JsonObject:
        """The current object."""
        stored = self.server.get(self.case.kind.resource, self.case.name, NAMESPACE)
        assert stored
        return stored

    @staticmethod
    def theirs(name: str) -> JsonObject:
        """An object with another owner."""
        return {"metadata": {"name": name, "namespace": NAMESPACE, "labels": THEIRS}}

    def ready(self) -> tuple[str, str]:
        """Status and reason of its condition Ready."""
        found = ready_in(self.parent().get("status", {}))
        return (found["status"], found["reason"]) if found else ("", "")

    def children(self) -> list[tuple[Resource, JsonObject]]:
        """Return the object's children, each with its resource."""
        served = [each for each in self.case.kind.owns if self.server.serves(each)]
        found = (
            (resource, child)
            for resource in served
            for child in self.server.list(resource, NAMESPACE)
        )
        return [
            (resource, child)
            for resource, child in found
            if child["metadata"].get("labels") != THEIRS
        ]

    def _make_ready(self, resource: Resource, child: JsonObject) -> None:
        name, generation = child["metadata"]["name"], child["metadata"].get("generation")
        if resource.kind == "Endpoints":
            self._lead(resource, child)
            return
        status: JsonObject = {}
        if resource.kind in RUNNING:
            count = child["spec"]["replicas"]
            counts = dict.fromkeys(
                ("replicas", "readyReplicas", "updatedReplicas", "availableReplicas"), count
            )
            status = {**counts, "observedGeneration": generation}
        if resource.kind == "Job":
            complete = {"type": "Complete", "status": "True"}
            status = {"conditions": [complete | {"lastTransitionTime": "2026-01-01T00:00:00Z"}]}
        if (resource.api_version, resource.kind) in KINDS:
            ready = {"type": "Ready", "status": "True", "reason": "AllReady", "message": ""}
            ready["lastTransitionTime"] = "2026-01-01T00:00:00Z"
            status = {"phase": "Running", "conditions": [ready], "observedGeneration": generation}
        if not status or child.get("status") == status:
            return
        self.server.change(resource, name, {"status": status}, NAMESPACE, "status")
        if resource.kind == "StatefulSet":
            pod = {
                "name": f"{name}-0",
                "namespace": NAMESPACE,
                **child["spec"]["template"]["metadata"],
            }
            account = child["spec"]["template"]["spec"].get("serviceAccountName", "default")
            self.server.apply(
                POD, {"metadata": pod, "spec": {"serviceAccountName": account}}, "kubelet"
            )
            conditions = [{"type": "Ready", "status": "True"}]
            self.server.change(
                POD, f"{name}-0", {"status": {"conditions": conditions}}, NAMESPACE, "status"
            )

    def _lead(self, resource: Resource, endpoints: JsonObject) -> None:
        """Make the first instance of a database the leader, as Patroni does."""
        name = endpoints["metadata"]["name"]
        leader = {"leader": f"{name}-0"}
        if name == self.case.name and "leader" not in endpoints["metadata"]["annotations"]:
            self.server.change(resource, name, {"metadata": {"annotations": leader}}, NAMESPACE)


def templates(value: Any) -> Iterator[JsonObject]:
    """Yield each template in an object: of pods, of Jobs, of claims."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key in ("template", "jobTemplate"):
                yield each
            elif key == "volumeClaimTemplates":
                yield from each
            yield from templates(each)


def pods(object: JsonObject) -> Iterator[JsonObject]:
    """Yield the spec of each kind of pod that an object makes."""
    yield from (each["spec"] for each in templates(object) if "containers" in each["spec"])


def containers(pod: JsonObject) -> list[JsonObject]:
    """All containers of a pod."""
    return [*pod.get("initContainers", ()), *pod["containers"]]
