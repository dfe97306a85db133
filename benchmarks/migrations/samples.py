"""The samples of a library, read from its files."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from config.documents import Document, DocumentError, read_documents
from webhook.harness.objects import is_object

# The original rule allows the first. The API server sets the unset field of the next two, and
# rejects a Pod without containers.
DISPUTED = (
    "require-drop-cap-net-raw/.chainsaw-test/bad-pod-corner.yaml: Pod add-capabilities-bad-001",
    "imagepullpolicy-always imagepullpolicy-always: Pod myapp-pod-2",
    "imagepullpolicy-always imagepullpolicy-always: Deployment mydeploy1",
    "psp-seccomp-baseline/allowed_ephemeral.yaml (seccomp-baseline)",
)


class Sample(NamedTuple):
    """An object, whether the original denies it, and the other inputs of the original."""

    where: str
    document: Document
    is_denied: bool
    beside: Sequence[Document] = ()
    labels: Mapping[str, dict[str, str]] = MappingProxyType({})
    is_written: bool = False  # judged without the API server's defaults
    patched: Document | None = None  # the object after the original's mutation


def read_file(path: Path) -> list[Document]:
    """Return the objects of a file; none if it cannot be read."""
    try:
        return [
            replace(each, source=str(path))
            for each in read_documents(path)
            if is_object(each) or isinstance(each.value, dict)
        ]
    except DocumentError:
        return []


def name_of(document: Document) -> str:
    """Return the name of an object."""
    return str((document.value.get("metadata") or {}).get("name", ""))
