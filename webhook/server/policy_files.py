"""Reads the policy set from files and watched ConfigMaps; an empty file or key is an error."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import orjson

from config.documents import (
    Document,
    DocumentError,
    parse_documents,
    read_documents,
    yaml_files_in,
)
from kube.watched import AbsentError, WatchedObject
from webhook.policy_sets.bound_objects import Catalogue
from webhook.policy_sets.policy_set import PolicySet, read


def policy_set_of(
    paths: Sequence[Path], catalogue: Catalogue, config_maps: Iterable[WatchedObject] = ()
) -> PolicySet:
    """Return the policies and exceptions of files, directories and ConfigMaps.

    Raises DocumentError if a file cannot be read, or is empty, since it may be half-written;
    PolicySetError if an object is invalid; AbsentError if a ConfigMap does not exist. A directory
    may be empty: deleting a file removes its policies. The keys of a ConfigMap are treated like
    files.
    """
    return read(documents_of(paths, config_maps), catalogue)


def documents_of(
    paths: Iterable[Path], config_maps: Iterable[WatchedObject] = ()
) -> list[Document]:
    """Return the documents of files, directories and ConfigMaps, case files included.

    Raises DocumentError or AbsentError as `policy_set_of`.
    """
    return [*_documents(paths), *chain.from_iterable(map(_documents_in, config_maps))]


def digest_of(paths: Iterable[Path], config_maps: Iterable[WatchedObject]) -> bytes:
    """Return a digest of what files and ConfigMaps hold, or that they do not exist.

    Content is read again each time: when the kubelet swaps a mounted volume it renames a link above
    the files, and no event and no modification time of the files themselves tells of it.
    """
    contents = [_content(path) for path in _files(paths)]
    contents += map(_data, config_maps)
    return hashlib.sha256(b"".join(contents)).digest()


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield each file, and the files below each directory."""
    for path in paths:
        try:  # what a kubelet mounts keeps its states below names that begin with two dots
            yield from _files(
                sorted(below for below in path.iterdir() if not below.name.startswith(".."))
            )
        except OSError:
            yield path


def _content(path: Path) -> bytes:
    try:
        return hashlib.sha256(path.read_bytes()).digest()
    except OSError as error:
        return str(error.errno).encode()


def _data(config_map: WatchedObject) -> bytes:
    """Return the data of a ConfigMap, without labels and versions."""
    try:
        return orjson.dumps(config_map.get().get("data"), option=orjson.OPT_SORT_KEYS)
    except AbsentError:
        return b"absent"


def _documents_in(config_map: WatchedObject) -> Iterator[Document]:
    for key, text in sorted((config_map.get().get("data") or {}).items()):
        source = f"{config_map}: {key}"
        documents = list(parse_documents(text.encode(), source))
        if not documents:
            remedy = "remove it if its policies are to go"
            raise DocumentError(f"{source}: no policies in this key; {remedy}")
        yield from documents


def _documents(paths: Iterable[Path]) -> Iterator[Document]:
    for path in paths:
        if path.is_dir():
            remedy = "remove it if its policies are to go"
            files = yaml_files_in(path)
        else:
            remedy = "leave it out of --policies if there are to be none"
            files = [path]
        for file in files:
            documents = list(read_documents(file))
            if not documents:
                raise DocumentError(f"{file}: no policies in this file; {remedy}")
            yield from documents
