"""Prepares a case for a real API server: unique names, and a policy object that matches only them.

Each case gets its own namespace, and the policy with its parameters matches the namespaces of its cases. For
cluster-scoped objects, and for cases about the name of a namespace, it matches by a label.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from kube.resource import JsonObject
from tests.policies.on_a_cluster.beforehand import beforehand
from tests.policies.on_a_cluster.requests import Ask, request_for
from webhook.engine import BoundPolicy
from webhook.engine.kinds import POLICY_KINDS
from webhook.harness.bases import is_cluster_scoped, merge
from webhook.harness.case_file import ExpectedAnswer
from webhook.harness.cases import Trial
from webhook.harness.reviews import Admission, reviewed_namespace

# the user that prepares objects, whom the policies exclude; cases are sent as their own users
SETUP_USER = "admin"
LABEL = "bound-to"
KEEPS_ITS_NAMESPACE = {"default-namespace"}  # policies about the names of namespaces
EXCLUDED = {"users": [SETUP_USER]}


@dataclass(frozen=True, slots=True)
class Question:
    """A case prepared for the API server; `id` is its namespace and part of its names."""

    id: str
    trial: Trial
    admission: Admission
    policy: str
    beforehand: tuple[Ask, ...]
    ask: Ask
    as_if_written: (
        Ask | None
    )  # for a policy that sets fields: the same request with these fields already set

    @property
    def title(self) -> str:
        """Its title in a failure message."""
        return f"{self.trial.where}: {self.trial.name} ({self.id})"

    def told(self, text: str) -> str:
        """Return the API server's message with the names of the case."""
        own = self.trial.admission.namespace or "default"
        return (
            text.replace(f".{self.id}.", ".")
            .replace(f"{self.id}-other", "other")
            .replace(self.id, own)
        )


def policy_object(name: str, bound: BoundPolicy) -> JsonObject:
    """Return the policy object for all cases of one policy with the same parameters."""
    is_namespaced = any(target.kind.namespaced for target in bound.policy.targets)
    clauses = [
        *([{"namespaces": [f"{name}-*"]}] if is_namespaced else ()),
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


def written(bound: BoundPolicy) -> JsonObject:
    """Return the parameters in the form of the case file."""
    return bound.params.model_dump(mode="json", exclude_unset=True)


def questions(trials: Sequence[Trial]) -> tuple[list[JsonObject], list[Question]]:
    """Return the policy objects, each with its cases."""
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
    """Whether its objects are policies that would judge other cases at the same time."""
    return question.trial.admission.about["kind"] in {kind.kind for kind in POLICY_KINDS}


def _question(id: str, name: str, trial: Trial, policy: BoundPolicy) -> Question:
    if "ingresses" in trial.looked_up:
        trial = _with_own_hosts(trial, id)
    labelled = (
        is_cluster_scoped(trial.admission.about["kind"])
        or policy.policy.name in KEEPS_ITS_NAMESPACE
    )
    where = trial.admission.namespace if policy.policy.name in KEEPS_ITS_NAMESPACE else id
    new = _placed(trial.admission.object, id, where, name if labelled else None)
    old = _placed(trial.admission.old_object, id, where, name if labelled else None)
    about = new or old or {}
    namespace = reviewed_namespace(about, where)
    admission = replace(trial.admission, object=new, old_object=old, namespace=namespace)
    placed = replace(trial, admission=admission)
    expected = _expected(placed) if policy.policy.mutate is not None else None
    return Question(
        id=id,
        trial=trial,
        admission=admission,
        policy=name,
        beforehand=tuple(beforehand(placed, id, where)),
        ask=request_for(admission, where),
        as_if_written=None
        if expected is None
        else request_for(replace(admission, object=expected), where),
    )


def _expected(trial: Trial) -> JsonObject | None:
    """Return the object to store, if it is expected to be allowed."""
    if trial.admission.object is None or trial.admission.operation == "CONNECT":
        return None
    if not isinstance(trial.expect, ExpectedAnswer):
        return trial.admission.object
    return merge(trial.admission.object, trial.expect.patched) if trial.expect.patched else None


def _placed(object: JsonObject | None, id: str, where: str, label: str | None) -> JsonObject | None:
    """Return the object in the case's namespace, with the label if the policy matches by label."""
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
    """Return a case about all Ingresses of the cluster, with hosts that no other case has."""

    def own(value: Any) -> Any:
        return json.loads(
            re.sub(r"\.example\b", f".{id}.example", json.dumps(value), flags=re.IGNORECASE)
        )

    admission = trial.admission
    mine = replace(admission, object=own(admission.object), old_object=own(admission.old_object))
    return replace(
        trial,
        admission=mine,
        looked_up=trial.looked_up | {"ingresses": own(trial.looked_up["ingresses"])},
    )
