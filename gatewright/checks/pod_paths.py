"""Paths of pods in custom kinds (`--pod-kinds`) that no object has: nothing would be judged."""

from collections.abc import Iterator, Sequence

from config.documents import Document
from gatewright.checks.origin_files import value_below
from kube.resource import group_version_kind
from webhook.engine.kinds import custom_pod_kinds


def missing_pod_paths(documents: Sequence[Document]) -> Iterator[str]:
    """Yield a line for each kind whose objects do not have the path of its pods."""
    for kind in custom_pod_kinds():
        path = kind.pod_spec or ""
        of_kind = [each for each in documents if _is_of(each, kind.group, kind.kind)]
        if of_kind and not any(_has(each, path) for each in of_kind):
            where = of_kind[0].where()
            yield f"{where}: no {kind.kind} has {path}, which --pod-kinds names: no pod was judged"


def _is_of(document: Document, group: str, kind: str) -> bool:
    found, _, name = group_version_kind(document.value)
    return (found, name) == (group, kind)


def _has(document: Document, path: str) -> bool:
    value = document.value
    for step in path.split("."):
        value = value_below(value, step)
    return value is not None
