"""Read policy sets from files."""

from collections.abc import Sequence
from pathlib import Path

from config.documents import Document, read_documents, yaml_files
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import PolicySet, read


def policy_documents(paths: Sequence[Path]) -> list[Document]:
    """Return the documents of the files at `paths`, or in those directories.

    Raises DocumentError on a read error.
    """
    return [
        document for path in paths for file in yaml_files(path) for document in read_documents(file)
    ]


def policy_set(paths: Sequence[Path]) -> PolicySet:
    """Return the policies and exceptions of the files at `paths`, or in those directories.

    Raises DocumentError if a file cannot be read, PolicySetError if an object is invalid.
    """
    return read(policy_documents(paths), catalogue())
