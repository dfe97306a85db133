"""Paths of pods in custom kinds (`--pod-kinds`) that no object has: nothing would be judged."""

from collections.abc import Iterator, Sequence
from typing import Any

from config.documents import Document
from gatewright.checks.origin_files import value_below
from kube.resource import group_version_kind
from webhook.engine.kinds import custom_pod_kinds


def missing_pod_paths(documents: Sequence[Document]) -> Iterator[str]:
    """Yield a line for each kind whose objects do not have the path of its pods."""
    for kind in custom_pod_kinds():
        of_kind = [each for each in documents if _is_of(each, kind.group, kind.kind)]
        for path in kind.pod_specs or (kind.pod_spec or "",):
            if of_kind and not any(_has(each.value, path) for each in of_kind):
                where = of_kind[0].where()
                why = "which --pod-kinds names: no pod of it is judged"
                yield f"{where}: no {kind.kind} has {path}, {why}"


def _is_of(document: Document, group: str, kind: str) -> bool:
    found, _, name = group_version_kind(document.value)
    return (found, name) == (group, kind)


def _has(value: Any, path: str) -> bool:
    here, is_list, below = path.partition("[].")
    for step in here.split("."):
        value = value_below(value, step)
    if not is_list:
        return value is not None
    return isinstance(value, list) and any(_has(item, below) for item in value)
