"""Kubernetes' own admission policies among documents: CEL is imported only where there are any."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from config.api.admission import GROUP as ADMISSION
from config.documents import Document
from webhook.engine.bound import BoundPolicy
from webhook.engine.kinds import Kind


@dataclass(frozen=True, slots=True)
class Native:
    """One of Kubernetes' own admission policies (or a binding of one): what is in force of it, and its faults."""

    document: Document
    policies: tuple[BoundPolicy, ...]
    faults: tuple[tuple[str, str], ...]


def find_native(documents: Iterable[Document], kinds: Sequence[Kind] = ()) -> tuple[list[Native], list[Document]]:
    """Return Kubernetes' own admission policies among the documents, and the other documents.

    `kinds` are those of their cluster that the table of kinds does not have.
    """
    documents = list(documents)
    versions = (each.value.get("apiVersion") for each in documents if isinstance(each.value, dict))
    if not any(str(version).startswith(f"{ADMISSION}/") for version in versions):
        return [], documents
    from webhook.policy_sets.admission_policies import (
        native_policies,  # with CEL, as in policy_set
    )

    return native_policies(documents, kinds)
