"""How a case is put to a real API server: where it happens, what must be there before, and the request itself.

Each case has a namespace of its own, and the policy with its parameters is bound to the namespaces of its cases. What
is in no namespace, or where the namespace's name is what the case is about, is bound to the policy by a label.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from webhook.engine import NAMESPACE_LABELS, BoundPolicy
from webhook.engine.kinds import POLICY_KINDS, resource_of
from webhook.harness.bases import CLUSTER_SCOPED, merge, namespace_of, smallest
from webhook.harness.cases import Expectation, Trial
from webhook.harness.reviews import Admission, group_version_kind

SETUP_USER = "admin"  # makes what must be there before, unseen by the policies; cases are asked as their own users
LABEL = "bound-to"
KEEPS_ITS_NAMESPACE = {"default-namespace"}  # policies that are about the names of namespaces
EXCLUDED = {"users": [SETUP_USER]}

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ask:
    """One request to the API server."""

    method: str
    path: str
    body: Object | None = None
    query: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A case as it is put to the API server; `id` stands for its namespace, and in its names."""

    id: str
    trial: Trial
    admission: Admission
    policy: str
    beforehand: tuple[Ask, ...]
    ask: Ask
    as_if_written: Ask | None  # where a policy sets fields: the request of somebody who had written them already

    def told(self, text: str) -> str:
        """Return what the API server said in the words of the case."""
        own = self.trial.admission.namespace or "default"
        return text.replace(f".{self.id}.", ".").replace(f"{self.id}-other", "other").replace(self.id, own)


def policy_object(name: str, bound: BoundPolicy) -> Object:
    """Return the policy object for all cases of one policy with the same parameters."""
    clauses = [
        {"namespaces": [f"{name}-*"]},
        {"names": [f"{name}-*"]},
        {"objectSelector": {"matchLabels": {LABEL: name}}},
    ]
    return {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "policy": bound.policy.name,
            "params": written(bound),
            "match": {"any": clauses, "exclude": EXCLUDED},
        },
    }


def written(bound: BoundPolicy) -> Object:
    """Return the parameters as the case file has them."""
    return bound.params.model_dump(mode="json", exclude_unset=True)


def questions(trials: Sequence[Trial]) -> tuple[list[Object], list[Question]]:
    """Return the policy objects, and the cases bound to them."""
    names: dict[tuple[str, str], str] = {}
    bound: dict[str, BoundPolicy] = {}
    asked = []
    for index, trial in enumerate(trials):
        (policy,) = trial.engine.policies
        key = policy.policy.name, json.dumps(written(policy), sort_keys=True)
        name = names.setdefault(key, f"p{len(names)}")
        bound[name] = policy
        asked.append(_question(f"{name}-{index}", name, trial, policy))
    return [policy_object(name, policy) for name, policy in bound.items()], asked


def is_about_policies(question: Question) -> bool:
    """Whether its objects come into force themselves, so that nothing else may be asked at the same time."""
    return question.trial.admission.about["kind"] in {kind.kind for kind in POLICY_KINDS}


def _question(id: str, name: str, trial: Trial, policy: BoundPolicy) -> Question:
    if "ingresses" in trial.looked_up:
        trial = _with_own_hosts(trial, id)
    labelled = trial.admission.about["kind"] in CLUSTER_SCOPED or policy.policy.name in KEEPS_ITS_NAMESPACE
    where = trial.admission.namespace if policy.policy.name in KEEPS_ITS_NAMESPACE else id
    new = _placed(trial.admission.object, id, where, name if labelled else None)
    old = _placed(trial.admission.old_object, id, where, name if labelled else None)
    about = new or old or {}
    namespace = namespace_of(about["kind"], about, where)
    admission = replace(trial.admission, object=new, old_object=old, namespace=namespace)
    placed = replace(trial, admission=admission)
    expected = _expected(placed) if policy.policy.mutate is not None else None
    return Question(
        id=id,
        trial=trial,
        admission=admission,
        policy=name,
        beforehand=tuple(_beforehand(placed, id, where)),
        ask=_ask(placed, where),
        as_if_written=None
        if expected is None
        else _ask(replace(placed, admission=replace(admission, object=expected)), where),
    )


def _expected(trial: Trial) -> Object | None:
    """Return the object that is to be stored, where it is to be let in."""
    if trial.admission.object is None or trial.admission.operation == "CONNECT":
        return None
    if not isinstance(trial.expect, Expectation):
        return trial.admission.object
    return merge(trial.admission.object, trial.expect.patched) if trial.expect.patched else None


def _placed(object: Object | None, id: str, where: str, label: str | None) -> Object | None:
    """Return the object where it is to be: in the case's namespace, and bound by label where that is not enough."""
    if object is None or not isinstance(object.get("metadata"), dict):
        return object
    metadata = dict(object["metadata"])
    if metadata.get("namespace"):
        metadata["namespace"] = where
    if label is not None:
        if metadata.get("name") == "case":
            metadata["name"] = id
        if isinstance(metadata.get("labels") or {}, dict):
            metadata["labels"] = {**(metadata.get("labels") or {}), LABEL: label}
    return object | {"metadata": metadata}


def _with_own_hosts(trial: Trial, id: str) -> Trial:
    """Return a case about the Ingresses of the whole cluster with hosts that no other case has."""

    def own(value: Any) -> Any:
        return json.loads(re.sub(r"\.example\b", f".{id}.example", json.dumps(value), flags=re.IGNORECASE))

    admission = trial.admission
    mine = replace(admission, object=own(admission.object), old_object=own(admission.old_object))
    return replace(trial, admission=mine, looked_up=trial.looked_up | {"ingresses": own(trial.looked_up["ingresses"])})


# What is there before


def _beforehand(trial: Trial, id: str, where: str) -> Iterator[Ask]:
    if where == id:
        labels = trial.looked_up[NAMESPACE_LABELS].items()
        yield creation(_namespace(id, {key: value for key, value in labels if key != "kubernetes.io/metadata.name"}))
    for account in sorted(_accounts(trial)):
        mounts = {} if trial.admission.old_object is None else {"automountServiceAccountToken": False}
        yield creation(smallest("ServiceAccount", account, where) | mounts)  # a patch would take away what was mounted
    yield from _before_this(trial, where)
    for name, objects in trial.looked_up.items():
        if name in LOOKED_UP:
            yield from (creation(each) for given in objects for each in LOOKED_UP[name](given, id))


def _accounts(trial: Trial) -> set[str]:
    """Return the ServiceAccounts without which the API server makes no such Pod."""
    objects = (trial.admission.object, trial.admission.old_object)
    pods = [each["spec"] for each in objects if each and each["kind"] == "Pod" and isinstance(each["spec"], dict)]
    names = [pod.get("serviceAccountName") or pod.get("serviceAccount") or "default" for pod in pods]
    return {name for name in names if isinstance(name, str)}


def _before_this(trial: Trial, where: str) -> Iterator[Ask]:
    """Yield what makes the object as it was."""
    new, old = trial.admission.object, trial.admission.old_object
    if old is None:
        return
    if trial.admission.subresource == "scale":
        parent = merge(smallest("Deployment", namespace=where), trial.looked_up.get("scale_parent", {}))
        yield creation(merge(parent, {"metadata": {"namespace": where}, "spec": {"replicas": old["spec"]["replicas"]}}))
    elif trial.admission.subresource == "ephemeralcontainers":
        assert new is not None
        spec = {key: value for key, value in new["spec"].items() if key != "ephemeralContainers"}
        yield creation(new | {"spec": spec})  # nothing else can be changed in this way
        if added := old["spec"].get("ephemeralContainers"):
            path = path_of(old, old["metadata"]["name"], where, trial.admission.subresource)
            yield Ask("PATCH", path, {"spec": {"ephemeralContainers": added}})
    else:
        yield creation(old)
        if old["metadata"]["name"] in OF_KUBERNETES:
            yield Ask("PATCH", path_of(old, old["metadata"]["name"]), old)


def _namespace(name: str, labels: Mapping[str, str]) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels)}}


def _limit_range(given: Object, id: str) -> Iterator[Object]:
    name = given.get("metadata", {}).get("name") or f"l{abs(hash(json.dumps(given)))}"
    yield {"apiVersion": "v1", "kind": "LimitRange", **given, "metadata": {"name": name, "namespace": id}}


def _service(given: Object, id: str) -> Iterator[Object]:
    service = smallest("Service", namespace=id)
    del service["spec"]["selector"]
    yield merge(service, given)


def _budget(given: Object, id: str) -> Iterator[Object]:
    budget = smallest("PodDisruptionBudget", namespace=id)
    yield {**budget, "metadata": {**budget["metadata"], **given["metadata"]}, "spec": given["spec"]}


def _workload(given: Object, id: str) -> Iterator[Object]:
    labels = given["spec"]["template"]["metadata"]["labels"]
    owners = [{"apiVersion": "apps/v1", "uid": id, **each} for each in given["metadata"].get("ownerReferences", ())]
    bound = {"metadata": {"ownerReferences": owners}, "spec": {"selector": {"matchLabels": labels}}}
    yield merge(merge(smallest(given["kind"], namespace=id), given), bound)


def _ingress(given: Object, id: str) -> Iterator[Object]:
    namespace = id if given["namespace"] == "default" else f"{id}-{given['namespace']}"
    if namespace != id:
        yield _namespace(namespace, {})
    rules = [{"host": host.lower()} for host in given["hosts"]]
    spec = {"rules": rules, "defaultBackend": {"service": {"name": "case", "port": {"number": 80}}}}
    yield smallest("Ingress", name=given["name"], namespace=namespace) | {"spec": spec}


LOOKED_UP: dict[str, Callable[[Object, str], Iterator[Object]]] = {  # how what was looked up comes to be there
    "limit_ranges": _limit_range,
    "services": _service,
    "ingresses": _ingress,
    "workloads": _workload,
    "disruption_budgets": _budget,
}
OF_KUBERNETES = {"view", "edit"}  # objects that are there already


# The request itself


def path_of(object: Object, name: str | None = None, namespace: str | None = None, subresource: str = "") -> str:
    """Return the path of an object's collection, or of the object, or of a part of it."""
    group, version, kind = group_version_kind(object)
    steps = [f"/apis/{group}/{version}" if group else f"/api/{version}"]
    if namespace and kind not in CLUSTER_SCOPED:
        steps.append(f"namespaces/{namespace}")
    steps.append(resource_of(group, kind))
    return "/".join([*steps, *([name] if name else []), *([subresource] if subresource else [])])


def creation(object: Object, namespace: str | None = None) -> Ask:
    """Return the request that creates an object."""
    return Ask("POST", path_of(object, namespace=namespace or object["metadata"].get("namespace")), object)


def _ask(trial: Trial, where: str) -> Ask:
    admission = trial.admission
    new, old = admission.object, admission.old_object
    if admission.operation == "CONNECT":
        assert new is not None
        return Ask("POST", path_of(smallest("Pod"), "case", where, admission.subresource), query=tuple(_options(new)))
    if admission.operation == "CREATE":
        assert new is not None
        return creation(new, where)
    assert old is not None
    if admission.operation == "DELETE":
        return Ask("DELETE", path_of(old, old["metadata"]["name"], where))
    about = smallest("Deployment") if admission.subresource == "scale" else old
    change = difference(old, new)
    return Ask("PATCH", path_of(about, old["metadata"]["name"], where, admission.subresource), change)


def _options(connection: Object) -> Iterator[tuple[str, str]]:
    for key, value in connection.items():
        if key not in ("apiVersion", "kind"):
            for each in value if isinstance(value, list) else [value]:
                yield key, each if isinstance(each, str) else json.dumps(each)


def difference(old: Any, new: Any) -> Any:
    """Return the merge patch (RFC 7386) that makes `new` of `old`."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    gone = {key: None for key, value in old.items() if value is not None and new.get(key) is None}
    kept = {key: value for key, value in new.items() if value is not None and old.get(key) != value}
    return gone | {key: difference(old.get(key), value) for key, value in kept.items()}
