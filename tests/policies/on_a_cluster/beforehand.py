"""Objects that a case needs beforehand: its namespace, the old object, and the results of look-ups."""

from collections.abc import Callable, Iterator, Mapping

from kube.resource import JsonObject
from tests.policies.on_a_cluster.requests import Ask, creation, path_of
from webhook.engine import NAMESPACE_LABELS
from webhook.harness.bases import merge, smallest
from webhook.harness.cases import Trial


def beforehand(trial: Trial, id: str, where: str) -> Iterator[Ask]:
    """Yield the requests that create them, in order."""
    if where == id:
        labels = trial.looked_up[NAMESPACE_LABELS].items()
        yield creation(
            _namespace(
                id, {key: value for key, value in labels if key != "kubernetes.io/metadata.name"}
            )
        )
    for account in sorted(_accounts(trial)):
        mounts = (
            {} if trial.admission.old_object is None else {"automountServiceAccountToken": False}
        )
        yield creation(
            smallest("ServiceAccount", account, where) | mounts
        )  # a patch would remove the volume mounts
    yield from _before_this(trial, where)
    for name, objects in trial.looked_up.items():
        if name in LOOKED_UP:
            yield from (creation(each) for given in objects for each in LOOKED_UP[name](given, id))


def _accounts(trial: Trial) -> set[str]:
    """Return the ServiceAccounts that the API server requires for a Pod."""
    objects = (trial.admission.object, trial.admission.old_object)
    pods = [
        object["spec"]
        for object in objects
        if object and object["kind"] == "Pod" and isinstance(object["spec"], dict)
    ]
    names = [
        pod.get("serviceAccountName") or pod.get("serviceAccount") or "default" for pod in pods
    ]
    return {name for name in names if isinstance(name, str)}


def _before_this(trial: Trial, where: str) -> Iterator[Ask]:
    """Yield the requests that create the old object."""
    new, old = trial.admission.object, trial.admission.old_object
    if old is None:
        return
    if trial.admission.subresource == "scale":
        parent = merge(smallest("Deployment", namespace=where), trial.looked_up.get("parent", {}))
        yield creation(
            merge(
                parent,
                {"metadata": {"namespace": where}, "spec": {"replicas": old["spec"]["replicas"]}},
            )
        )
    elif trial.admission.subresource == "ephemeralcontainers":
        assert new is not None
        spec = {key: value for key, value in new["spec"].items() if key != "ephemeralContainers"}
        yield creation(new | {"spec": spec})  # only the spec can be changed in this way
        if added := old["spec"].get("ephemeralContainers"):
            path = path_of(old, old["metadata"]["name"], where, trial.admission.subresource)
            yield Ask("PATCH", path, {"spec": {"ephemeralContainers": added}})
    else:
        yield creation(old)
        if old["metadata"]["name"] in OF_KUBERNETES:
            yield Ask("PATCH", path_of(old, old["metadata"]["name"]), old)
        if status := old.get("status"):
            yield Ask(
                "PATCH", path_of(old, old["metadata"]["name"], where, "status"), {"status": status}
            )


def _namespace(name: str, labels: Mapping[str, str]) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": dict(labels)},
    }


def _limit_range(given: JsonObject, id: str) -> Iterator[JsonObject]:
    named = {"generateName": "limits-", **given.get("metadata", {}), "namespace": id}
    yield {"apiVersion": "v1", "kind": "LimitRange", **given, "metadata": named}


def _service(given: JsonObject, id: str) -> Iterator[JsonObject]:
    service = smallest("Service", namespace=id)
    del service["spec"]["selector"]
    yield merge(service, given)


def _budget(given: JsonObject, id: str) -> Iterator[JsonObject]:
    budget = smallest("PodDisruptionBudget", namespace=id)
    yield {**budget, "metadata": {**budget["metadata"], **given["metadata"]}, "spec": given["spec"]}


def _workload(given: JsonObject, id: str) -> Iterator[JsonObject]:
    labels = given["spec"]["template"]["metadata"]["labels"]
    owners = [
        {"apiVersion": "apps/v1", "uid": id, **owner}
        for owner in given["metadata"].get("ownerReferences", ())
    ]
    bound = {"metadata": {"ownerReferences": owners}, "spec": {"selector": {"matchLabels": labels}}}
    yield merge(merge(smallest(given["kind"], namespace=id), given), bound)


def _autoscaler(given: JsonObject, id: str) -> Iterator[JsonObject]:
    yield merge(smallest(given["kind"], namespace=id), given)


def _cluster_role(given: JsonObject, id: str) -> Iterator[JsonObject]:
    yield merge(smallest("ClusterRole"), given)


def _ingress(given: JsonObject, id: str) -> Iterator[JsonObject]:
    namespace = id if given["namespace"] == "default" else f"{id}-{given['namespace']}"
    if namespace != id:
        yield _namespace(namespace, {})
    rules = [{"host": host.lower()} for host in given["hosts"]]
    spec = {"rules": rules, "defaultBackend": {"service": {"name": "case", "port": {"number": 80}}}}
    yield smallest("Ingress", name=given["name"], namespace=namespace) | {"spec": spec}


LOOKED_UP: dict[
    str, Callable[[JsonObject, str], Iterator[JsonObject]]
] = {  # how the results of each look-up are created
    "limit_ranges": _limit_range,
    "services": _service,
    "ingresses": _ingress,
    "workloads": _workload,
    "autoscalers": _autoscaler,
    "cluster_roles": _cluster_role,
    "disruption_budgets": _budget,
}
OF_KUBERNETES = {"view", "edit"}  # objects that exist in every cluster
