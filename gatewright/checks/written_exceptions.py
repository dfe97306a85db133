"""Exceptions for what `check` found: each from one policy, for these fields of one object. Pure."""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from config.api.policy_exception import PolicyException
from gatewright.outputs import SubjectResult
from webhook.engine import BoundPolicy
from webhook.engine.kinds import POD_KINDS

POD_SPECS = {kind.kind: f"{kind.pod_spec}." for kind in POD_KINDS if kind.pod_spec}
# what the controller of a kind makes of its template, by default pods
CREATES: Mapping[str, Sequence[str]] = {
    "Deployment": ("ReplicaSet", "Pod"),
    "CronJob": ("Job", "Pod"),
    "Pod": (),
    "PodTemplate": (),
}

Judged = Mapping[str, Collection[str]]


def judged_kinds(policies: Iterable[BoundPolicy]) -> Judged:
    """Return the kinds that each policy judges, by its title."""
    return {
        each.title: {
            target.kind.kind for target in each.policy.targets if each.match.can_select(target)
        }
        for each in policies
    }


def exceptions_for(
    results: Iterable[SubjectResult], judged: Judged, home: str, reason: str, expires: datetime
) -> list[dict[str, Any]]:
    """Return an exception for each object that policies deny; `judged` are the kinds they judge.

    Those from cluster policies stand in the namespace `home`, those from a tenant's in its own.
    """
    documents = dict[tuple[str, str], dict[str, Any]]()
    for result in results:
        found = dict[str, dict[str, None]]()  # paths by policy, each once
        for each in result.violations:
            if each.action == "Deny" and each.policy in judged:
                found.setdefault(each.policy, {})[each.path] = None
        for title, paths in found.items():
            namespace, _, policy = title.rpartition("/")
            document = documents.setdefault(
                (namespace or home, result.title),
                _exception(namespace or home, result, reason, expires),
            )
            document["spec"]["exceptions"] += [
                {"policy": policy, **entry} for entry in _entries(result, [*paths], judged[title])
            ]
    return [*documents.values()]


def _entries(
    result: SubjectResult, paths: list[str], judged: Collection[str]
) -> Iterator[dict[str, Any]]:
    """Yield an entry for the object, and one for each kind that is made of its pod template."""
    where = {"namespaces": [result.namespace]} if result.namespace else {}
    yield {"kinds": [result.kind], "names": [result.name], **where, "paths": paths}
    template = POD_SPECS.get(result.kind)
    for kind in CREATES.get(result.kind, ("Pod",)) if template else ():
        of_template = [
            POD_SPECS[kind] + path.removeprefix(str(template))
            for path in paths
            if path.startswith(str(template))
        ]
        if kind in judged and of_template:
            yield {"kinds": [kind], "names": [f"{result.name}-*"], **where, "paths": of_template}


def _exception(
    namespace: str, result: SubjectResult, reason: str, expires: datetime
) -> dict[str, Any]:
    parts = (result.kind, result.namespace, result.name)
    words = re.sub("[^a-z0-9]+", "-", "-".join(filter(None, parts)).lower()).strip("-")
    unique = hashlib.sha256(result.title.encode()).hexdigest()[:8]
    end = expires.isoformat().replace("+00:00", "Z")
    return {
        "apiVersion": PolicyException.definition.api_version,
        "kind": "PolicyException",
        "metadata": {"name": f"{words[:200]}-{unique}", "namespace": namespace},
        "spec": {"reason": reason, "expires": end, "exceptions": []},
    }
