"""Patroni of a PostgreSQL: its rights, its store in Endpoints, and the settings of the database.

Patroni decides which instance is the primary. It keeps its state in annotations of Endpoints, and
the addresses of the Endpoints `<name>` are those of the primary.
"""

import json
from collections.abc import Iterator

from config.api.postgresql import PostgreSQL
from config.postgresql_names import FieldFault
from config.postgresql_parameters import parameter_faults, synchronous_faults
from config.quantities import MILLI, parse_quantity
from controller.reconcilers.postgresql_pods import (
    COMPONENT,
    credentials,
    metadata,
    origin,
    secret_value,
    selector,
)
from controller.reconcilers.resources import (
    ENDPOINT_SLICE,
    ENDPOINTS,
    POD,
    ROLE,
    ROLE_BINDING,
    SERVICE,
    SERVICE_ACCOUNT,
)
from controller.runtime.plan import (
    Apply,
    ApplyFields,
    CreateOnly,
    Delete,
    Observed,
    Reference,
    Write,
)
from kube.resource import JsonObject, Resource

MAX_INSTANCES = 5  # instances that the schema allows
REST = 8008
ACCOUNT_DIRECTORY = "/var/run/secrets/kubernetes.io/serviceaccount"
LEADER = "leader"  # the annotation of the Endpoints <name>
SYNCHRONOUS = "sync_standby"  # the annotation of the Endpoints <name>-sync
CONFIG = "config"  # the annotation of the Endpoints <name>-config
# Annotations of the same Endpoints, of `store.py` of the scripts: the major versions of the data.
VERSION = "database.example.com/version"
PREVIOUS_VERSION = "database.example.com/previous-version"
# And of `start.sh`, each with the name of an instance whose volume is full.
FULL = "database.example.com/full-"
ROLE_LABEL = "database.example.com/role"  # primary or replica, on the pods
# A leader that does not renew its lock for `ttl` s loses it. `failsafe_mode` keeps a primary
# writable without the API server, as long as it reaches all members. `synchronous_mode` is without
# effect while there is no standby. `primary_start_timeout` 0 hands over to a synchronous standby
# at once where PostgreSQL has crashed; without one, it starts again. A server that does not stop
# within `primary_stop_timeout` s is killed (on a full volume it never stops); pods have 120 s.
SETTINGS = {
    "loop_wait": 5,
    "retry_timeout": 5,
    "ttl": 20,
    "failsafe_mode": True,
    "primary_start_timeout": 0,
    "primary_stop_timeout": 40,
    "synchronous_mode": True,
}
# Commits wait this long for a standby whose node is gone; by default, a minute.
TIMEOUTS = {"wal_sender_timeout": "15s", "wal_receiver_timeout": "15s"}
MEBI = 2**20 * MILLI  # in thousandths of a byte
SLICES_OF_SELECTOR = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
SERVICE_NAME = "kubernetes.io/service-name"
CONFIG_ORIGIN = {**origin(), f"metadata.annotations[{CONFIG}]": "spec.storage"}


def stores(database: PostgreSQL) -> list[str]:
    """Return the names of the Endpoints besides `<name>` that Patroni keeps its state in."""
    return [f"{database.name}-{each}" for each in ("config", "failover", "sync")]


def account_name(database: PostgreSQL) -> str:
    """Return the name of the pods' ServiceAccount.

    The chart's ValidatingAdmissionPolicies know the account by the end of its name.
    """
    return f"{database.name}-gatewright-patroni"


def access(database: PostgreSQL) -> list[Apply]:
    """Return the ServiceAccount of the pods, with the rights that Patroni needs."""
    about = metadata(database, account_name(database), "database")
    names = [database.name, *stores(database)]
    pods = [f"{database.name}-{ordinal}" for ordinal in range(MAX_INSTANCES)]
    rules = [
        _rule("endpoints", ["list", "watch"]),
        {**_rule("endpoints", ["get", "patch"]), "resourceNames": names},
        _rule("pods", ["list", "watch"]),
        {**_rule("pods", ["patch"]), "resourceNames": pods},
    ]
    account = {
        "apiVersion": SERVICE_ACCOUNT.api_version,
        "kind": SERVICE_ACCOUNT.kind,
        "metadata": about,
        "automountServiceAccountToken": False,
    }
    role = {
        "apiVersion": ROLE.api_version,
        "kind": ROLE.kind,
        "metadata": about,
        "rules": rules,
    }
    namespace = database.namespace
    subject = {"kind": SERVICE_ACCOUNT.kind, "name": account_name(database), "namespace": namespace}
    binding = {
        "apiVersion": ROLE_BINDING.api_version,
        "kind": ROLE_BINDING.kind,
        "metadata": about,
        "roleRef": {"apiGroup": ROLE.group, "kind": ROLE.kind, "name": account_name(database)},
        "subjects": [subject],
    }
    of_role = origin() | {"rules": "metadata.name"}
    of_binding = origin() | dict.fromkeys(("roleRef", "subjects"), "metadata.name")
    return [Apply(account, origin()), Apply(role, of_role), Apply(binding, of_binding)]


def _rule(resource: str, verbs: list[str]) -> JsonObject:
    return {"apiGroups": [""], "resources": [resource], "verbs": verbs}


def state(
    database: PostgreSQL, observed: Observed, *, is_upgrade_final: bool = False
) -> list[Write]:
    """Return the Endpoints of Patroni, each with a Service of its name.

    Endpoints without a Service are garbage: without `initialize`, the annotation of `-config`, a
    lost volume would become an empty database. They outlive the object as its volumes do. What is
    in them is Patroni's, except for the settings.
    """
    kept: list[Write] = []
    wanted = settings(database)
    for name in (database.name, *stores(database)):
        about = metadata(database, name, "database")
        if name != database.name:
            service = {"apiVersion": "v1", "kind": SERVICE.kind, "metadata": about}
            spec = {"clusterIP": "None", "ports": [{"name": "postgresql", "port": 5432}]}
            kept.append(_create_only(database, {**service, "spec": spec}))
        if name == stores(database)[0]:
            about = {**about, "annotations": {CONFIG: wanted}}
        kept.append(
            _create_only(database, {"apiVersion": "v1", "kind": ENDPOINTS.kind, "metadata": about})
        )
    if (stored := find_endpoints(database, observed, stores(database)[0])) is not None:
        given_up = {PREVIOUS_VERSION: ""} if is_upgrade_final else {}
        fields = {"metadata": {"annotations": {CONFIG: wanted, **given_up}}}
        kept.append(ApplyFields(_reference(ENDPOINTS, stored), fields))
    return kept


def _create_only(database: PostgreSQL, object: JsonObject) -> CreateOnly:
    sources = CONFIG_ORIGIN if "annotations" in object["metadata"] else origin()
    return CreateOnly(object, adopt_labels=selector(database, "database"), origin=sources)


def settings(database: PostgreSQL) -> str:
    """Return the settings of all instances, as JSON.

    At most a tenth of the volume is for the WAL that a crash replays, and a twentieth for the WAL
    that a standby may fetch late.
    """
    total = parse_quantity(database.spec.storage).millis // MEBI
    keep = min(max(total // 20, 64), 1024)
    if int(database.spec.version) >= 13:
        kept = {"wal_keep_size": f"{keep}MB"}
    else:
        kept = {"wal_keep_segments": str(keep // 16)}
    own = {"max_wal_size": f"{keep * 2}MB", **kept, **TIMEOUTS}
    parameters = {**own, **database.spec.parameters}
    postgresql = {"use_pg_rewind": True, "use_slots": True, "parameters": parameters}
    strict = {"synchronous_mode_strict": True} if database.spec.synchronous == "Required" else {}
    return json.dumps({**SETTINGS, **strict, "postgresql": postgresql}, sort_keys=True)


def wrong(database: PostgreSQL) -> Iterator[FieldFault]:
    """Yield the faults of the parameters, and of strict commits with too few instances."""
    yield from parameter_faults(database.spec.parameters, database.spec.version)
    yield from synchronous_faults(database.spec.synchronous, database.spec.replicas)


def environment(database: PostgreSQL) -> list[JsonObject]:
    """Return Patroni's environment: what differs between databases and instances.

    Patroni takes its own variables out of the environment of PostgreSQL.
    """
    secret = credentials(database)
    values = {
        "PATRONI_SCOPE": database.name,
        "PATRONI_NAME": "$(POD_NAME)",
        "PATRONI_KUBERNETES_POD_IP": "$(POD_IP)",
        "PATRONI_KUBERNETES_LABELS": json.dumps(selector(database, "database")),
        "PATRONI_RESTAPI_USERNAME": "patroni",
        "PATRONI_RESTAPI_PASSWORD": "$(REPLICATION_PASSWORD)",
        "PATRONI_SUPERUSER_USERNAME": "postgres",
        "PATRONI_SUPERUSER_PASSWORD": "$(POSTGRES_PASSWORD)",
        "PATRONI_REPLICATION_USERNAME": "replicator",
        "PATRONI_REPLICATION_PASSWORD": "$(REPLICATION_PASSWORD)",
    }
    return [
        _field("POD_NAME", "metadata.name"),
        _field("POD_IP", "status.podIP"),
        _field("PATRONI_KUBERNETES_NAMESPACE", "metadata.namespace"),
        secret_value("POSTGRES_PASSWORD", secret, "password"),
        secret_value("REPLICATION_PASSWORD", secret, "replication-password"),
        *({"name": name, "value": value} for name, value in values.items()),
    ]


def _field(name: str, path: str) -> JsonObject:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def token() -> JsonObject:
    """Return the volume with the token of the pod's ServiceAccount; one container mounts it."""
    authority = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    namespace = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
        {"configMap": authority},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": "token", "projected": {"sources": sources, "defaultMode": 0o440}}


def leader(database: PostgreSQL, observed: Observed) -> str | None:
    """Return the name of the primary's pod; None if Patroni has not chosen one.

    A pod of a release without Patroni is none: what is stored is older than a return to it.
    """
    stored = find_endpoints(database, observed, database.name) or {"metadata": {}}
    name = (stored["metadata"].get("annotations") or {}).get(LEADER)
    old = (pod["metadata"]["name"] for pod in old_pods(database, observed))
    return None if name in old else name or None


def standbys_of(database: PostgreSQL, observed: Observed) -> list[str]:
    """Return the synchronous standbys of the primary: one takes its place if it stops."""
    has_primary = leader(database, observed) is not None
    return complete_instances(database, observed)[1:] if has_primary else []


def complete_instances(database: PostgreSQL, observed: Observed) -> list[str]:
    """Return the instances that have every acknowledged transaction, as Patroni last stored it.

    No other instance becomes the primary by itself. Empty: Patroni has stored nothing, or that of
    an earlier primary.
    """
    primary = leader(database, observed)
    stored = find_endpoints(database, observed, f"{database.name}-sync") or {"metadata": {}}
    about = stored["metadata"].get("annotations") or {}
    last = about.get("leader")
    if not last or primary not in (None, last):
        return []
    return [last, *(name for name in (about.get(SYNCHRONOUS) or "").split(",") if name)]


def find_endpoints(database: PostgreSQL, observed: Observed, name: str) -> JsonObject | None:
    """Return existing Endpoints of the database."""
    endpoints = observed.find(ENDPOINTS, "instance", database.name)
    return next((each for each in endpoints if each["metadata"]["name"] == name), None)


def leftovers(database: PostgreSQL, observed: Observed) -> list[tuple[Resource, JsonObject]]:
    """Return the objects without an owner that the deletion of the database deletes."""
    own = {database.name, *stores(database)}
    return [
        (resource, object)
        for resource in (SERVICE, ENDPOINTS)
        for object in observed.find(resource, "instance", database.name)
        if object["metadata"]["name"] in own
        and not (resource == SERVICE and object["metadata"]["name"] == database.name)
    ]


def stale_slices(database: PostgreSQL, observed: Observed) -> list[Delete]:
    """Return the deletion of the slices that the Service had while it had a selector.

    No controller deletes them, and they have the address of an instance that may be no primary.
    """
    child = observed.child(SERVICE, database.name)
    if child is None or (child.get("spec") or {}).get("selector"):
        return []
    return [
        Delete(_reference(ENDPOINT_SLICE, slice))
        for slice in observed.find(ENDPOINT_SLICE, "instance", database.name)
        if slice["metadata"]["labels"].get(SERVICE_NAME) == database.name
        and SLICES_OF_SELECTOR.items() <= slice["metadata"]["labels"].items()
    ]


def old_pods(database: PostgreSQL, observed: Observed) -> list[JsonObject]:
    """Return the instances that an earlier release started, without Patroni."""
    return [
        pod
        for pod in observed.find(POD, "instance", database.name)
        if (pod["metadata"].get("labels") or {}).get(COMPONENT) == "database"
        and pod.get("spec", {}).get("serviceAccountName") != account_name(database)
    ]


def keep_annotations(endpoints: JsonObject) -> JsonObject:
    """Return what plans read of Endpoints; Patroni writes others every few seconds."""
    about = endpoints["metadata"]
    read = {
        key: value
        for key, value in (about.get("annotations") or {}).items()
        if key in (LEADER, CONFIG, SYNCHRONOUS, VERSION, PREVIOUS_VERSION) or key.startswith(FULL)
    }
    return {"metadata": {"labels": about.get("labels") or {}, "annotations": read}}


def keep_labels(object: JsonObject) -> JsonObject:
    """Return what plans read of a slice, or of a Service without an owner."""
    return {"metadata": {"labels": object["metadata"].get("labels") or {}}}


def _reference(resource: Resource, object: JsonObject) -> Reference:
    about = object["metadata"]
    return Reference(resource, about["name"], about["uid"], about.get("namespace"))
