"""What a case file tries: one policy with its parameters, or a whole policy set."""

from dataclasses import dataclass, replace
from typing import Any

from config.documents import Document
from webhook.engine import BoundPolicy, Engine
from webhook.engine.policy_set import Catalogue, bind, load


@dataclass(frozen=True, slots=True)
class Subject:
    """Policy objects as documents. Only a set has beside them the policies that are always in force."""

    documents: tuple[Document, ...]
    is_set: bool

    def engine(self, catalogue: Catalogue) -> Engine:
        """Return the engine of these policies. FaultsError or PolicySetError where they cannot be used."""
        if self.is_set:
            return Engine(load(self.documents, catalogue))
        bound = bind(self.documents[0].value, catalogue)
        assert isinstance(bound, BoundPolicy)
        return Engine([bound])

    def with_value(self, index: int, value: Any) -> "Subject":
        """Return the same policies with another value of one document."""
        changed = replace(self.documents[index], value=value)
        return replace(self, documents=(*self.documents[:index], changed, *self.documents[index + 1 :]))


def single(policy: str, params: dict[str, Any], document: Document) -> Subject:
    """Return one built-in policy, everywhere in force, by these parameters."""
    value = {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": policy},
        "spec": {"policy": policy, "params": params},
    }
    return Subject((replace(document, value=value),), is_set=False)
