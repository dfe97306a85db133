"""Case files: what is asked, and what should come of it. A typo in one is an error, never a case that says nothing."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from config.documents import Document, DocumentError, read_documents
from config.faults import FaultsError, did_you_mean, parse
from webhook.engine import NAMESPACE_LABELS, NOW, SERVED, BoundPolicy, Engine
from webhook.engine.policy_set import Catalogue, PolicySetError, bind, load
from webhook.engine.request import NAME_LABEL
from webhook.harness.bases import POD_KIND_NAMES, at, has_smallest, merge, namespace_of, pod_path, smallest
from webhook.harness.reviews import Admission

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)  # when cases happen that do not say


@dataclass(frozen=True, slots=True)
class Variant:
    """A subresource that a case can be tried as: the kind of its object, how it is asked, and of what it is a part."""

    kind: str
    operation: Literal["UPDATE", "CONNECT"] = "UPDATE"
    parent: tuple[str, str] | None = None  # group and kind, where they are not the object's own


VARIANTS = {
    "scale": Variant("Scale", parent=("apps", "Deployment")),
    "ephemeralcontainers": Variant("Pod"),
    "resize": Variant("Pod"),
    "exec": Variant("PodExecOptions", "CONNECT", ("", "Pod")),
    "attach": Variant("PodAttachOptions", "CONNECT", ("", "Pod")),
}


class CaseType(BaseModel):
    """A part of a case file."""

    model_config = ConfigDict(frozen=True, strict=True)


class Finding(CaseType):
    """One violation that is expected; what is left out is not compared."""

    path: str = Field(description="field the violation is about; of a `pod` case, below the pod's spec")
    message: str | None = Field(None, description="the whole message after the policy's name")
    policy: str | None = Field(None, description="name of the policy object")


class Expectation(CaseType):
    """What is expected; exactly one of these."""

    denied: list[Finding] | None = Field(None, min_length=1, description="denied with exactly these violations")
    malformed: list[Finding] | None = Field(
        None, min_length=1, description="denied, since the object is not what its kind says"
    )
    warned: list[Finding] | None = Field(None, min_length=1, description="allowed with exactly these warnings")
    patched: dict[str, Any] | None = Field(
        None, min_length=1, description="allowed; laid over the object, this is the result"
    )

    @model_validator(mode="after")
    def _exactly_one(self) -> "Expectation":
        if len(self.model_fields_set) != 1:
            raise ValueError(f"expected exactly one of {', '.join(type(self).model_fields)}")
        return self


class Case(CaseType):
    """One thing asked, and the expected answer."""

    name: str = Field(min_length=1, description="what this case shows")
    object: dict[str, Any] = Field({}, description="what differs from the smallest valid object of its kind")
    old_object: dict[str, Any] | None = Field(None, description="the same for the object as it was; makes it an UPDATE")
    pod: dict[str, Any] | None = Field(
        None, description="what differs from the smallest pod spec, wherever a kind carries it"
    )
    old_pod: dict[str, Any] | None = Field(None, description="the same for the pod spec as it was; makes it an UPDATE")
    each: Literal["pods"] | list[str] | None = Field(
        None,
        min_length=1,
        description="kinds or subresources this case is tried as; `pods`: every kind with a pod spec",
    )
    operation: Literal["CREATE", "UPDATE", "DELETE"] | None = Field(
        None, description="CREATE, or UPDATE with old_object"
    )
    namespace: str = Field("default", description="namespace of the object")
    namespace_labels: dict[str, str] = Field({}, description="labels of that namespace")
    username: str = Field("kubernetes-admin", description="who asks")
    groups: list[str] = Field(["system:authenticated"], description="groups of who asks")
    looked_up: dict[str, Any] = Field({}, description="what was looked up in the cluster, by name")
    now: AwareDatetime = Field(EPOCH, strict=False, description="the time, for exceptions that expire")
    params: dict[str, Any] | None = Field(None, description="parameters of the policy in this case")
    expect: Literal["allowed", "not-matched"] | Expectation


class CaseFile(CaseType):
    """The cases of one policy, or of one policy set."""

    policy: str | None = Field(None, description="name of the policy that is tried")
    policies: str | None = Field(None, description="policy set that is tried instead: a file, from here")
    params: dict[str, Any] = Field({}, description="parameters of the policy where a case has none")
    cases: list[Case] = Field(min_length=1)

    @model_validator(mode="after")
    def _one_subject(self) -> "CaseFile":
        if (self.policy is None) == (self.policies is None):
            raise ValueError("expected either policy or policies")
        if self.policies is not None and (self.params or any(case.params for case in self.cases)):
            raise ValueError("params belong to the policy set when policies is given")
        return self


@dataclass(frozen=True, slots=True)
class Trial:
    """One case as one kind: an engine, what it is asked, and what should come of it."""

    where: str
    name: str
    engine: Engine
    admission: Admission
    looked_up: dict[str, Any]
    expect: str | Expectation
    prefix: str  # path of the pod's spec, put before the paths of a `pod` case


def load_trials(path: Path, catalogue: Catalogue) -> Iterator[Trial]:
    """Yield the trials of a case file. DocumentError names file, line and fault where it cannot be used."""
    documents = list(read_documents(path))
    if not documents:
        raise DocumentError(f"{path}: no case file: it is empty")
    for document in documents:
        try:
            file = parse(CaseFile, document.value)
        except FaultsError as error:
            raise DocumentError("\n".join(_fault(document, *fault) for fault in error.faults)) from None
        engines: dict[str, Engine] = {}  # by what a case says of parameters: most say nothing
        for index, case in enumerate(file.cases):
            said = repr(case.params)
            try:
                if said not in engines:
                    engines[said] = _engine(file, case, document, f"cases[{index}]", catalogue)
                yield from _trials(engines[said], case, document, f"cases[{index}]")
            except FaultsError as error:
                raise DocumentError("\n".join(_fault(document, *fault) for fault in error.faults)) from None


def _fault(document: Document, path: str, text: str) -> str:
    return f"{document.where(path)}: {path}: {text}" if path else f"{document.where()}: {text}"


def _engine(file: CaseFile, case: Case, document: Document, at_case: str, catalogue: Catalogue) -> Engine:
    if file.policies is not None:
        try:
            return Engine(load(read_documents(Path(document.source).parent / file.policies), catalogue))
        except PolicySetError as error:
            raise DocumentError(str(error)) from None
    if file.policy not in catalogue:
        raise FaultsError([("policy", f'no policy "{file.policy}"{did_you_mean(str(file.policy), catalogue)}')])
    params = file.params if case.params is None else case.params
    value = {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": file.policy},
        "spec": {"policy": file.policy, "params": params},
    }
    try:
        bound = bind(value, catalogue)
        assert isinstance(bound, BoundPolicy)
        return Engine([bound])
    except FaultsError as error:
        where = "" if case.params is None else f"{at_case}."
        raise FaultsError((f"{where}{path.removeprefix('spec.')}", text) for path, text in error.faults) from None


def _trials(engine: Engine, case: Case, document: Document, at_case: str) -> Iterator[Trial]:
    kinds = POD_KIND_NAMES if case.each == "pods" else case.each or [_kind(case, at_case)]
    for each in kinds:
        variant = VARIANTS.get(each)
        kind = each if variant is None else variant.kind
        if kind not in has_smallest():
            known = [*has_smallest(), *VARIANTS]
            raise FaultsError(
                [
                    (
                        f"{at_case}.{'each' if case.each else 'object.kind'}",
                        f'unknown kind "{each}"{did_you_mean(each, known)}',
                    )
                ]
            )
        path = pod_path(kind)
        if case.pod is not None and path is None:
            raise FaultsError([(f"{at_case}.pod", f"a {kind} carries no pod spec")])
        _check_operation(case, each, variant, at_case)
        yield Trial(
            where=document.where(at_case),
            name=case.name if case.each is None else f"{case.name} [{each}]",
            engine=engine,
            admission=_admission(case, kind, "" if variant is None else each, variant),
            looked_up=case.looked_up
            | {
                NAMESPACE_LABELS: {NAME_LABEL: case.namespace, **case.namespace_labels},
                NOW: case.now,
                SERVED: (),
            },
            expect=case.expect,
            prefix=path if case.pod is not None and path is not None else "",
        )


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
    """Refuse what would not be tried: another operation than there is, or an old object where only one is asked of."""
    operation = _operation(case, variant)
    if case.operation not in (None, operation):
        raise FaultsError([(f"{at_case}.operation", f"{each} knows no {case.operation}, only {operation}")])
    for field in ("old_object", "old_pod"):
        if operation != "UPDATE" and getattr(case, field) is not None:
            raise FaultsError([(f"{at_case}.{field}", f"a {operation} is about one object, which is `object`")])


def _admission(case: Case, kind: str, subresource: str, variant: Variant | None) -> Admission:
    smallest_here = smallest(kind, namespace=case.namespace)
    object = _laid_over(smallest_here, kind, case.pod, case.object)
    operation = _operation(case, variant)
    old = _laid_over(smallest_here, kind, case.old_pod, case.old_object or {}) if operation == "UPDATE" else None
    return Admission(
        object=None if operation == "DELETE" else object,
        old_object=object if operation == "DELETE" else old,
        operation=operation,
        namespace=namespace_of(kind, object, case.namespace),
        subresource=subresource,
        parent_kind=None if variant is None else variant.parent,
        parent_name="case",
        username=case.username,
        groups=tuple(case.groups),
    )


def _laid_over(base: dict[str, Any], kind: str, pod: dict[str, Any] | None, object: dict[str, Any]) -> dict[str, Any]:
    with_pod = base if pod is None else merge(base, at(str(pod_path(kind)), pod))
    laid: dict[str, Any] = merge(with_pod, object)
    return laid
