"""Convert Pod Security labels to policies that judge each namespace by its labels."""

from collections.abc import Iterator, Mapping, Sequence

from config.documents import Document
from gatewright.tools.migrate.results import ConvertedPolicy, Origin

MODES = {"enforce": "Deny", "audit": "Audit", "warn": "Warn"}
PREFIX = "pod-security.kubernetes.io/"


def _labels(document: Document) -> Mapping[str, str]:
    labels = Origin(document).metadata.get("labels")
    return labels if isinstance(labels, dict) else {}


def convert_labels(documents: Sequence[Document]) -> Iterator[ConvertedPolicy]:
    """Yield policies that enforce the Pod Security labels of namespaces."""
    for mode, action in MODES.items():
        labelled = [
            document
            for document in documents
            if document.value.get("kind") == "Namespace" and PREFIX + mode in _labels(document)
        ]
        if labelled:
            params = {"level": "privileged", "namespace_labels": mode}
            written = {"policy": "pod-security", "params": params, "validationActions": [action]}
            note = f"judges each namespace by its label {PREFIX}{mode}"
            if action == "Deny":
                note += "; Pod Security enforces nothing on workloads, only on their pods"
                written["match"] = {"any": [{"kinds": ["Pod"]}]}
            name = f"pod-security-{mode}"
            yield ConvertedPolicy(Origin(labelled[0]), written, name, notes=[note])
