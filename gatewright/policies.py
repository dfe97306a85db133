"""Read policy sets from files and build the engine they make."""

from collections.abc import Sequence
from pathlib import Path

from config.documents import read_documents, yaml_files
from webhook.engine import Engine
from webhook.engine.policy_set import load
from webhook.policies import catalogue


def engine_of(paths: Sequence[Path]) -> Engine:
    """Return the engine of the policy sets at `paths` (files or directories), with what is always in force.

    DocumentError where a file cannot be read, PolicySetError where its objects cannot be used.
    """
    documents = [document for path in paths for file in yaml_files(path) for document in read_documents(file)]
    return Engine(load(documents, catalogue()))
