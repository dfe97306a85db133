"""The policies that a case file tests: one policy with its parameters, or a policy set."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from config.documents import Document
from webhook.engine import BoundPolicy, Engine, Outcome
from webhook.engine.exceptions import HOME
from webhook.harness.watched import Looks
from webhook.policy_sets.policy_set import Catalogue, bind, in_force, read


class WatchedEngine(Engine):
    """An engine that records which of its policies read the object."""

    def __init__(self, policies: Iterable[BoundPolicy], looks: Looks) -> None:
        """Use policies watched by `looks`."""
        super().__init__(policies)
        self._looks = looks
        self._built_in = {bound.title: bound.policy.name for bound in self.policies}

    def begin(self) -> None:
        """Clear the record."""
        self._looks.policies.clear()

    def looked(self, outcome: Outcome) -> bool:
        """Whether the policy of an outcome read the object, or reported something without reading it."""
        has_result = outcome.violations or outcome.tolerated or outcome.patched or outcome.malformed or outcome.error
        name = self._built_in.get(outcome.policy, outcome.policy)
        return bool(has_result) or name in self._looks.policies or self._is_in_cel(outcome.policy)

    def _is_in_cel(self, title: str) -> bool:
        return title in self._built_in and self._built_in[title] not in self._looks.watched


@dataclass(frozen=True, slots=True)
class Subject:
    """Policy objects as documents. A policy set also includes the policies that are always in force.

    Exceptions from cluster policies that name a namespace count in `home`.
    """

    documents: tuple[Document, ...]
    is_set: bool
    home: str = HOME

    def engine(self, catalogue: Catalogue) -> WatchedEngine:
        """Return the engine of these policies. Raises FaultsError or PolicySetError if they are invalid."""
        looks = Looks()
        watched = looks.wrapped(catalogue)
        if self.is_set:
            return WatchedEngine(in_force(read(self.documents, watched), watched, self.home), looks)
        bound = bind(self.documents[0].value, watched)
        assert isinstance(bound, BoundPolicy)
        return WatchedEngine([bound], looks)

    def with_value(self, index: int, value: Any) -> "Subject":
        """Return the same policies with another value for one document."""
        changed = replace(self.documents[index], value=value)
        return replace(self, documents=(*self.documents[:index], changed, *self.documents[index + 1 :]))


def single(policy: str, params: dict[str, Any], document: Document) -> Subject:
    """Return one built-in policy with these parameters, in force everywhere."""
    value = {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": policy},
        "spec": {"policy": policy, "params": params},
    }
    return Subject((replace(document, value=value),), is_set=False)
