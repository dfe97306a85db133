"""Turn ClusterAdmissionPolicy objects into policies in force, naming every fault with its file and line."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from config.api.policy import API_VERSION, ClusterAdmissionPolicy
from config.documents import Document
from config.faults import FaultsError, did_you_mean, parse
from webhook.engine.bound import BoundPolicy
from webhook.engine.match import Match, compile_match
from webhook.engine.policy import Policy

Catalogue = Mapping[str, Policy]


class PolicySetError(ValueError):
    """A policy set that cannot be used; the text has a line for each fault: file, line, object, path, what is wrong."""


def load(documents: Iterable[Document], catalogue: Catalogue) -> tuple[BoundPolicy, ...]:
    """Return the policies in force: those of the documents in order, after those that are always in force.

    PolicySetError names all faults of all documents.
    """
    bound: dict[str, BoundPolicy] = {}
    faults: list[str] = []
    for document in documents:
        try:
            policy = bind(document.value, catalogue)
            if policy.name in bound:
                raise FaultsError([("metadata.name", "stands twice in this policy set; names are unique")])
            bound[policy.name] = policy
        except FaultsError as error:
            faults += (
                f"{document.where(path)}: {_title(document.value)}: {_text(path, text)}" for path, text in error.faults
            )
    if faults:
        raise PolicySetError("\n".join(faults))
    named = {policy.policy.name for policy in bound.values()}
    return (*always_in_force(catalogue, named), *bound.values())


def always_in_force(catalogue: Catalogue, named: Iterable[str] = ()) -> Iterator[BoundPolicy]:
    """Yield the policies that need nobody to ask for them, but for those a policy set has `named`."""
    for policy in catalogue.values():
        if policy.always and policy.name not in named:
            yield BoundPolicy(policy.name, policy, policy.params(), Match(), frozenset({"Deny"}))


def bind(value: Any, catalogue: Catalogue) -> BoundPolicy:
    """Return one ClusterAdmissionPolicy object (decoded) as a policy in force. FaultsError names every fault."""
    if not isinstance(value, dict):
        raise FaultsError([("", "not an object")])
    if value.get("apiVersion") != API_VERSION or value.get("kind") != "ClusterAdmissionPolicy":
        found = " ".join(str(value[key]) for key in ("apiVersion", "kind") if key in value) or "this"
        raise FaultsError([("", f"a policy set holds {API_VERSION} ClusterAdmissionPolicy objects, not {found}")])
    spec = parse(ClusterAdmissionPolicy, value).spec
    policy = catalogue.get(spec.policy)
    if policy is None:
        raise FaultsError([("spec.policy", f'no policy "{spec.policy}"{did_you_mean(spec.policy, catalogue)}')])
    try:
        params = parse(policy.params, spec.params, noun="parameter")
    except FaultsError as error:
        raise FaultsError((f"spec.params.{path}".rstrip("."), text) for path, text in error.faults) from None
    judged = {target.kind.kind for target in policy.targets}
    faults = [
        (f"spec.match.any[{index}].kinds", f'{policy.name} does not look at "{kind}"{did_you_mean(kind, judged)}')
        for index, clause in enumerate(spec.match.any)
        for kind in clause.kinds or ()
        if kind not in judged
    ]
    if faults:
        raise FaultsError(faults)
    name = value["metadata"]["name"]
    return BoundPolicy(
        name,
        policy,
        params,
        compile_match(spec.match),
        frozenset(map(str, spec.validation_actions)),
        fails_closed=spec.failure_policy == "Fail",
        tolerates_existing=spec.allow_existing_violations,
    )


def _title(value: Any) -> str:
    metadata = value.get("metadata") if isinstance(value, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{value['kind']} {name}" if name and "kind" in value else "document"


def _text(path: str, text: str) -> str:
    return f"{path}: {text}" if path else text
