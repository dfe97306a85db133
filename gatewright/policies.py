"""Read policy sets from files and build the engine they make."""

from collections.abc import Sequence
from pathlib import Path

from config.documents import DocumentError, read_documents, yaml_files
from webhook.engine import Engine, Planners
from webhook.engine.policy_set import PolicySet, in_force, read
from webhook.policies import catalogue

HOME = "gatewright-system"  # where Gatewright is installed, unless somebody says otherwise


def policy_set(paths: Sequence[Path]) -> PolicySet:
    """Return what the files at `paths` (or in those directories) say.

    DocumentError where a file cannot be read, PolicySetError where its objects cannot be used.
    """
    return read(
        (document for path in paths for file in yaml_files(path) for document in read_documents(file)), catalogue()
    )


def engine_of(paths: Sequence[Path], home: str, planners: Planners) -> Engine:
    """Return the engine of the policy sets at `paths`, with what is always in force. Errors as for `policy_set`.

    At `home` are the exceptions from cluster policies that name a namespace; what the planners make is judged too.
    DocumentError where there are paths and no policy: whoever names a policy set means to be judged by one.
    """
    found = policy_set(paths)
    if paths and not found.policies:
        raise DocumentError(f"{', '.join(map(str, paths))}: no policies")
    return Engine(in_force(found, catalogue(), home), planners)
