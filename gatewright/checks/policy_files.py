"""Read policy sets from files and build the engine."""

from collections.abc import Sequence
from pathlib import Path

from config.documents import Document, DocumentError, read_documents, yaml_files
from webhook.engine import Engine, Planners
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import PolicySet, in_force, read


def policy_documents(paths: Sequence[Path]) -> list[Document]:
    """Return the documents of the files at `paths`, or in those directories.

    Raises DocumentError on a read error.
    """
    return [
        document for path in paths for file in yaml_files(path) for document in read_documents(file)
    ]


def policy_set(paths: Sequence[Path]) -> PolicySet:
    """Return the policies and exceptions of the files at `paths`, or in those directories.

    Raises DocumentError where a file cannot be read, PolicySetError where an object is invalid.
    """
    return read(policy_documents(paths), catalogue())


def engine_of(paths: Sequence[Path], home: str, planners: Planners) -> Engine:
    """Return the engine of the policy sets at `paths`, with the rules that are always in force.

    Exceptions from cluster policies that name a namespace count in `home`. Planned children are
    judged too. Raises as `policy_set`, and DocumentError if `paths` contain no policy.
    """
    return engine_from(policy_set(paths), home, planners, paths)


def engine_from(
    found: PolicySet, home: str, planners: Planners, paths: Sequence[Path] = ()
) -> Engine:
    """Return the engine of a parsed policy set, as `engine_of` does."""
    if paths and not found.policies:
        raise DocumentError(f"{', '.join(map(str, paths))}: no policies")
    return Engine(in_force(found, catalogue(), home), planners)
