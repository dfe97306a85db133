"""The verdict of converted policies on a sample."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from benchmarks.migrations.samples import Sample
from config.documents import Document, DocumentError
from gatewright.tools.migrate.results import ConvertedPolicy
from webhook.engine import NOW as NOW_LOOK_UP
from webhook.engine import BoundPolicy, Engine
from webhook.harness.bases import is_cluster_scoped
from webhook.harness.manifests import ManifestJudge, add_manifests
from webhook.harness.objects import is_whole
from webhook.harness.reviews import Admission, ask, review, reviewed_namespace
from webhook.known import Known
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue
from webhook.review import read

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def judged(policies: Iterable[ConvertedPolicy], sample: Sample) -> str:
    """Return the verdict of converted policies on a sample, whatever their actions are."""
    bound = []
    for each in policies:
        spec = {**each.spec, "validationActions": ["Deny"]}
        bound.append(bind({**each.object, "spec": spec}, catalogue()))
    engine = Engine(each for each in bound if isinstance(each, BoundPolicy))
    known = Known()
    add_manifests(known, filter(is_whole, [*sample.beside, sample.document]), "default")
    for document in (sample.document, *sample.beside):
        known.set_labels((document.value.get("metadata") or {}).get("namespace", "default"), {})
    for namespace, labels in sample.labels.items():
        known.set_labels(namespace, labels)
    value = sample.document.value
    if value["kind"] == "AdmissionReview":
        request = value["request"]
        old = request.get("oldObject", request["object"])
        return _as_written(engine, known, request["object"], old)
    if sample.is_written:
        return _as_written(engine, known, value, patched=sample.patched)
    try:
        found = ManifestJudge(engine, known, "default", NOW)(sample.document)
    except DocumentError as error:
        return str(error)
    if found.verdict in ("unmatched", "mutated"):
        return "allowed"
    if found.verdict == "error":
        return f"error {found.findings[0]}"
    return found.verdict


def _as_written(
    engine: Engine,
    known: Known,
    object: dict[str, Any],
    old: dict[str, Any] | None = None,
    patched: Document | None = None,
) -> str:
    namespace = (object.get("metadata") or {}).get("namespace", "default")
    if is_cluster_scoped(object["kind"]):
        namespace = ""
    group = object["apiVersion"].rpartition("/")[0]
    kinds = (target.kind for each in engine.policies for target in each.policy.targets)
    plurals = {(kind.group, kind.kind): kind.plural for kind in kinds}
    resource = plurals.get((group, object["kind"]), "")
    where = reviewed_namespace(object, namespace)
    operation = "UPDATE" if old else "CREATE"
    admission = Admission(object, old, operation, where, resource=resource)
    looked_up = {NOW_LOOK_UP: NOW, **known.about(namespace)}
    if patched is not None:
        made = ask(engine, admission, looked_up).object
        return "allowed" if _has(made, patched.value) else "changed otherwise"
    request = read(review(admission)).with_looked_up(looked_up)
    return "allowed" if engine.validate(request).allowed else "denied"


def _has(made: Any, wanted: Any) -> bool:
    """Return whether an object has the expected fields; it may have others, such as defaults."""
    if isinstance(wanted, dict) and isinstance(made, dict):
        return all(_has(made.get(k), each) for k, each in wanted.items() if k != "namespace")
    if isinstance(wanted, list) and isinstance(made, list):
        return len(made) == len(wanted) and all(map(_has, made, wanted))
    return bool(made == wanted)
