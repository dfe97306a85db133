"""Parse case files into trials. A typo is an error, and so is a case that asserts nothing."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from config.documents import Document, DocumentError, read_documents
from config.faults import FaultsError, did_you_mean, parse
from config.schemas import unknown_fields
from webhook.engine import NAMESPACE_LABELS, NOW, SERVED
from webhook.engine.exceptions import HOME
from webhook.engine.kinds import Kind
from webhook.engine.request import NAME_LABEL
from webhook.harness.bases import POD_KIND_NAMES, at, has_smallest, merge, namespace_of, pod_path, smallest
from webhook.harness.case_file import Case, CaseFile, Expectation
from webhook.harness.derived import derive, expected_of
from webhook.harness.looked_up import look_up_faults
from webhook.harness.reviews import Admission, group_version_kind
from webhook.harness.subject import Subject, WatchedEngine, single
from webhook.policy_sets.policy_set import Catalogue, PolicySetError


@dataclass(frozen=True, slots=True)
class Variant:
    """A subresource that a case can use: the kind of its object, its operation, and its parent kind."""

    kind: str
    operation: Literal["UPDATE", "CONNECT"] = "UPDATE"
    parent: tuple[str, str] | None = None  # group and kind, if they differ from the object's


VARIANTS = {
    "scale": Variant("Scale", parent=("apps", "Deployment")),
    "ephemeralcontainers": Variant("Pod"),
    "resize": Variant("Pod"),
    "exec": Variant("PodExecOptions", "CONNECT", ("", "Pod")),
    "attach": Variant("PodAttachOptions", "CONNECT", ("", "Pod")),
}


@dataclass(frozen=True, slots=True)
class Trial:
    """One case for one kind: the tested policies, the request, and the expected answer.

    `path` is the path of the case in its document, such as `cases[3]`. `prefix` is the path of the pod's spec, put
    before the paths of a `pod` case. `looks_up` has the names of the look-ups that the case itself sets.
    """

    document: Document
    path: str
    name: str
    subject: Subject
    engine: WatchedEngine
    admission: Admission
    looked_up: dict[str, Any]
    expect: str | Expectation
    prefix: str
    looks_up: frozenset[str] = frozenset()
    derived: bool = False

    @property
    def where(self) -> str:
        """File and line of the case."""
        return self.document.where(self.path)


def load_trials(path: Path, catalogue: Catalogue, home: str = HOME) -> Iterator[Trial]:
    """Yield the trials of a case file. Raises DocumentError with file, line and message of every error.

    `home` is the namespace Gatewright is installed in, where exceptions from cluster policies count.
    """
    documents = list(read_documents(path))
    if not documents:
        raise DocumentError(f"{path}: the case file is empty")
    for document in documents:
        try:
            file = parse(CaseFile, document.value)
        except FaultsError as error:
            raise _refused(document, error.faults) from None
        trials: list[Trial] = []
        faults: list[tuple[str, str]] = []
        tried: dict[str, tuple[Subject, WatchedEngine]] = {}  # by the parameters of a case; most cases set none
        for index, case in enumerate(file.cases):
            at_case, key = f"cases[{index}]", repr(case.params)
            try:
                if key not in tried:
                    tried[key] = _tried(file, case, document, at_case, catalogue, home)
                trials += _trials(tried[key], case, document, at_case)
            except FaultsError as error:
                faults += error.faults
        if faults:
            raise _refused(document, faults)
        yield from trials


def _refused(document: Document, faults: Iterable[tuple[str, str]]) -> DocumentError:
    return DocumentError("\n".join(_fault(document, *fault) for fault in dict.fromkeys(faults)))


def _fault(document: Document, path: str, text: str) -> str:
    return f"{document.where(path)}: {path}: {text}" if path else f"{document.where()}: {text}"


def _tried(
    file: CaseFile, case: Case, document: Document, at_case: str, catalogue: Catalogue, home: str
) -> tuple[Subject, WatchedEngine]:
    """Return the policies under test. Raises FaultsError or DocumentError if they are invalid."""
    if file.policies is not None:
        subject = Subject(tuple(read_documents(Path(document.source).parent / file.policies)), True, home)
        try:
            return subject, subject.engine(catalogue)
        except PolicySetError as error:
            raise DocumentError(str(error)) from None
    if file.policy not in catalogue:
        raise FaultsError([("policy", f'no policy "{file.policy}"{did_you_mean(str(file.policy), catalogue)}')])
    subject = single(str(file.policy), file.params if case.params is None else case.params, document)
    try:
        return subject, subject.engine(catalogue)
    except FaultsError as error:
        where = "" if case.params is None else f"{at_case}."
        raise FaultsError((f"{where}{path.removeprefix('spec.')}", text) for path, text in error.faults) from None


def _trials(tried: tuple[Subject, WatchedEngine], case: Case, document: Document, at_case: str) -> Iterator[Trial]:
    if case.each is not None and "kind" in case.object:
        raise FaultsError([(f"{at_case}.object.kind", "not beside each, which names the kinds")])
    for each in POD_KIND_NAMES if case.each == "pods" else case.each or [_kind(case, at_case)]:
        trial = _trial(tried, case, each, document, at_case)
        yield trial
        for how in case.also:
            try:
                admission, expect = derive(trial.admission, how), expected_of(trial.expect, how)
            except LookupError as error:
                raise FaultsError([(f"{at_case}.also", f"{how}: {error}")]) from None
            yield replace(trial, name=f"{trial.name} [{how}]", admission=admission, expect=expect, derived=True)


def _trial(tried: tuple[Subject, WatchedEngine], case: Case, each: str, document: Document, at_case: str) -> Trial:
    variant = VARIANTS.get(each)
    kind = each if variant is None else variant.kind
    custom = None if kind in has_smallest() else _custom(tried[1], case.object)
    if kind not in has_smallest() and custom is None:
        at_kind = f"{at_case}.{'each' if case.each else 'object.kind'}"
        raise FaultsError([(at_kind, f'unknown kind "{each}"{did_you_mean(each, [*has_smallest(), *VARIANTS])}')])
    path = pod_path(kind)
    if case.pod is not None and path is None:
        raise FaultsError([(f"{at_case}.pod", f"a {kind} has no pod spec")])
    _check_operation(case, each, variant, at_case)
    parent_kind = kind if variant is None or variant.parent is None else variant.parent[1]
    if faults := list(look_up_faults(case.looked_up, parent_kind)):
        raise FaultsError([(f"{at_case}.{path}", text) for path, text in faults])
    namespace_labels = {NAME_LABEL: case.namespace, **case.namespace_labels}
    return Trial(
        document,
        at_case,
        name=case.name if case.each is None else f"{case.name} [{each}]",
        subject=tried[0],
        engine=tried[1],
        admission=_admission(case, kind, "" if variant is None else each, variant, at_case, custom),
        looked_up=case.looked_up | {NAMESPACE_LABELS: namespace_labels, NOW: case.now, SERVED: ()},
        expect=case.expect,
        prefix=path if case.pod is not None and path is not None else "",
        looks_up=frozenset(case.looked_up),
    )


def _custom(engine: WatchedEngine, object: dict[str, Any]) -> Kind | None:
    """Return the kind of an object that a policy names in full (`certificates.cert-manager.io/v1/Certificate`)."""
    group, _, kind = group_version_kind(object)
    targets = (target for bound in engine.policies for target in bound.policy.targets)
    return next((target.kind for target in targets if (target.kind.group, target.kind.kind) == (group, kind)), None)


def _kind(case: Case, at_case: str) -> str:
    kind = case.object.get("kind", "Pod" if case.pod is not None else None)
    if not isinstance(kind, str):
        raise FaultsError([(f"{at_case}.object.kind", "missing; a case needs a kind, or each")])
    return kind


def _operation(case: Case, variant: Variant | None) -> str:
    is_update = case.old_object is not None or case.old_pod is not None
    whole = case.operation or ("UPDATE" if is_update else "CREATE")
    return whole if variant is None else variant.operation


def _check_operation(case: Case, each: str, variant: Variant | None, at_case: str) -> None:
    """Reject a case that would not be run as written: an impossible operation, or an old object that is not used."""
    operation = _operation(case, variant)
    if case.operation not in (None, operation):
        raise FaultsError([(f"{at_case}.operation", f"{each} does not support {case.operation}, only {operation}")])
    for field in ("old_object", "old_pod"):
        if operation != "UPDATE" and getattr(case, field) is not None:
            raise FaultsError([(f"{at_case}.{field}", f"a {operation} has only one object: use `object`")])


def _check_fields(object: dict[str, Any], pod: str | None, at_object: str, at_pod: str) -> None:
    """Reject fields that the kind does not have: a case with a typo would test nothing."""
    faults = list(unknown_fields(object))
    if faults:
        raise FaultsError(
            (f"{at_pod}{path.removeprefix(pod)}" if pod and path.startswith(f"{pod}.") else f"{at_object}.{path}", text)
            for path, text in faults
        )


def _admission(
    case: Case, kind: str, subresource: str, variant: Variant | None, at_case: str, custom: Kind | None
) -> Admission:
    if custom is None:
        smallest_here = smallest(kind, namespace=case.namespace)
    else:
        named = {"name": "case", "namespace": case.namespace}
        smallest_here = {"apiVersion": case.object["apiVersion"], "kind": kind, "metadata": named}
    object = _laid_over(smallest_here, kind, case.pod, case.object)
    operation = _operation(case, variant)
    metadata = object.get("metadata")
    named = {"name": metadata["name"]} if isinstance(metadata, dict) and "name" in metadata else {}
    before = merge(smallest_here, {"metadata": named})  # an update does not rename an object
    old = _laid_over(before, kind, case.old_pod, case.old_object or {}) if operation == "UPDATE" else None
    _check_fields(object, None if case.pod is None else pod_path(kind), f"{at_case}.object", f"{at_case}.pod")
    if old is not None:
        _check_fields(
            old, None if case.old_pod is None else pod_path(kind), f"{at_case}.old_object", f"{at_case}.old_pod"
        )
    return Admission(
        object=None if operation == "DELETE" else object,
        old_object=object if operation == "DELETE" else old,
        operation=operation,
        namespace=namespace_of(object, case.namespace),
        subresource=subresource,
        parent_kind=None if variant is None else variant.parent,
        parent_name="case",
        username=case.username,
        groups=tuple(case.groups),
        resource="" if custom is None else custom.plural,
    )


def _laid_over(base: dict[str, Any], kind: str, pod: dict[str, Any] | None, object: dict[str, Any]) -> dict[str, Any]:
    with_pod = base if pod is None else merge(base, at(str(pod_path(kind)), pod))
    laid: dict[str, Any] = merge(with_pod, object)
    return laid
