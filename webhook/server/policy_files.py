"""The policy set of files and of a watched ConfigMap: an empty file or key is an error."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import orjson

from config.documents import (
    Document,
    DocumentError,
    parse_documents,
    read_documents,
    yaml_files_in,
)
from kube.watched import WatchedObject
from webhook.policy_sets.bound_objects import Catalogue
from webhook.policy_sets.policy_set import PolicySet, read


def policy_set_of(
    paths: Sequence[Path], catalogue: Catalogue, config_map: WatchedObject | None = None
) -> PolicySet:
    """Return the policies and exceptions of files, directories and a ConfigMap.

    DocumentError where a file cannot be read, or holds nothing: it may be half-written. When a file
    of a directory is deleted, so are its policies; a directory may be empty. The keys of a
    ConfigMap are such files. PolicySetError where an object is invalid, AbsentError without the
    ConfigMap.
    """
    documents = [*_documents(paths), *(_documents_in(config_map) if config_map else ())]
    return read(documents, catalogue)


def digest_of(config_map: WatchedObject) -> bytes:
    """Return a digest of what a ConfigMap holds, whatever its labels and versions are."""
    data = orjson.dumps(config_map.get().get("data"), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(data).digest()


def _documents_in(config_map: WatchedObject) -> Iterator[Document]:
    for key, text in sorted((config_map.get().get("data") or {}).items()):
        source = f"{config_map}: {key}"
        documents = list(parse_documents(text.encode(), source))
        if not documents:
            meant = "remove it if its policies are to go"
            raise DocumentError(f"{source}: no policies in this key; {meant}")
        yield from documents


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
