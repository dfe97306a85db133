"""The policy set of files that change while a process runs: an empty one is an error."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from config.documents import Document, DocumentError, read_documents, yaml_files_in
from webhook.policy_sets.policy_set import Catalogue, PolicySet, read


def policy_set_of(paths: Sequence[Path], catalogue: Catalogue) -> PolicySet:
    """Return the policies and exceptions of the files at `paths`, or in those directories.

    DocumentError where a file cannot be read, or holds nothing: it may be half-written. When a file
    of a directory is deleted, so are its policies; a directory may be empty. PolicySetError where
    an object is invalid.
    """
    return read(_documents(paths), catalogue)


def _documents(paths: Iterable[Path]) -> Iterator[Document]:
    for path in paths:
        if path.is_dir():
            meant = "remove it if its policies are to go"
            files = yaml_files_in(path)
        else:
            meant = "leave it out of --policies if there are to be none"
            files = [path]
        for file in files:
            documents = list(read_documents(file))
            if not documents:
                raise DocumentError(f"{file}: no policies in this file; {meant}")
            yield from documents
