"""Write exceptions for violations: each from one policy, for fields of one object. Pure."""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from config.api.policy_exception import PolicyException
from config.documents import Document
from gatewright.console.options import NAMESPACE_NAME
from gatewright.outputs import SubjectResult
from webhook.engine import BoundPolicy
from webhook.engine.kinds import KINDS

# The kinds created from a kind's pod template; by default only pods.
CREATES: Mapping[str, Sequence[str]] = {
    "Deployment": ("ReplicaSet", "Pod"),
    "CronJob": ("Job", "Pod"),
    "Rollout": ("ReplicaSet", "Pod"),
    "Pod": (),
    "PodTemplate": (),
}
MAX_PREFIX = 58  # characters of a generateName that the API server keeps
# A name that means one object, or the prefix of a generated name. Without a name, it is "*".
NAMED = re.compile(r"[^*?]{1,253}\*?")


class ExceptedObject(NamedTuple):
    """A judged object, or a planned child of one."""

    kind: str
    namespace: str
    name: str


class ExceptionWriter:
    """Collects denied objects, and writes an exception for each object and policy."""

    def __init__(
        self, policies: Iterable[BoundPolicy], documents: Iterable[Document], home: str
    ) -> None:
        """Take the policies; `home` is the namespace of exceptions from cluster policies.

        An exception can name only policies that have a document.
        """
        metadata = [each.value["metadata"] for each in documents]
        named = {"/".join(filter(None, (e.get("namespace"), e["name"]))) for e in metadata}
        self._home = home
        self._judged = {
            policy.title: {
                target.kind.kind
                for target in policy.policy.targets
                if policy.match.can_select(target)
            }
            for policy in policies
            if policy.title in named
        }
        # Fields of each object, by result and policy:
        self._found: dict[tuple[ExceptedObject, str], dict[ExceptedObject, dict[str, None]]] = {}

    def add(self, results: Iterable[SubjectResult]) -> bool:
        """Add the denied fields; return whether any is new."""
        is_new = False
        for result in results:
            subject = ExceptedObject(result.kind, result.namespace, result.name)
            for violation in result.violations:
                if violation.action != "Deny" or violation.policy not in self._judged:
                    continue
                where, path = (
                    (violation.child[:3], violation.child.path)
                    if violation.child
                    else (subject, violation.path)
                )
                is_place = not where[1] or NAMESPACE_NAME.fullmatch(where[1])
                if not (is_place and NAMED.fullmatch(where[2])):
                    continue
                objects = self._found.setdefault((subject, violation.policy), {})
                paths = objects.setdefault(ExceptedObject(*where), {})
                is_new |= path not in paths
                paths[path] = None
        return is_new

    def documents(self, reason: str, expires: datetime) -> list[Document]:
        """Return the exceptions.

        Exceptions from cluster policies are in Gatewright's namespace, those from a tenant's policy
        in the policy's namespace.
        """
        documents = dict[tuple[str, ExceptedObject], dict[str, Any]]()
        for (subject, title), objects in self._found.items():
            namespace, _, policy = title.rpartition("/")
            place = namespace or self._home
            document = documents.setdefault(
                (place, subject), _exception(place, subject, reason, expires)
            )
            document["spec"]["exceptions"] += [
                {"policy": policy, **entry}
                for object, paths in objects.items()
                for entry in _entries(object, [*paths], self._judged[title])
            ]
        return [Document.of_object(each) for each in documents.values()]


def _entries(
    object: ExceptedObject, paths: list[str], judged: Collection[str]
) -> Iterator[dict[str, Any]]:
    """Yield an entry for the object, and one per kind created from its pod template."""
    where = {"namespaces": [object.namespace]} if object.namespace else {}
    name = _generate_name(object.name[:-1]) if object.name.endswith("*") else object.name
    yield {"kinds": [object.kind], "names": [name], **where, "paths": paths}
    templates = _templates()
    template = re.compile(templates.get(object.kind) or "(?!)")
    places = [(path, template.match(path)) for path in paths]
    of_pod = [path[place.end() :] for path, place in places if place is not None]
    for kind in CREATES.get(object.kind, ("Pod",)) if of_pod else ():
        above = templates[kind].replace("\\", "")
        of_template = [above + path for path in of_pod]
        if kind in judged:
            created = _generate_name(f"{name}-") if kind == "Pod" else f"{name}-*"
            yield {"kinds": [kind], "names": [created], **where, "paths": of_template}


def _templates() -> dict[str, str]:
    """Return a pattern of each kind's pod templates; "" for a Pod. Options add kinds."""
    with_pods = ((each.kind, each.pod_specs or (each.pod_spec,)) for each in KINDS.values())
    return {
        kind: "|".join(re.escape(path.removesuffix("spec")) for path in paths if path).replace(
            r"\[\]", r"\[[^]]*\]"
        )
        for kind, paths in with_pods
        if any(paths)
    }


def _generate_name(prefix: str) -> str:
    return f"{prefix[:MAX_PREFIX]}*"


def _exception(
    namespace: str, subject: ExceptedObject, reason: str, expires: datetime
) -> dict[str, Any]:
    words = re.sub("[^a-z0-9]+", "-", "-".join(filter(None, subject)).lower()).strip("-")
    unique = hashlib.sha256("/".join(subject).encode()).hexdigest()[:8]
    end = expires.isoformat().replace("+00:00", "Z")
    return {
        "apiVersion": PolicyException.definition.api_version,
        "kind": "PolicyException",
        "metadata": {"name": f"{words[:200]}-{unique}", "namespace": namespace},
        "spec": {"reason": reason, "expires": end, "exceptions": []},
    }
