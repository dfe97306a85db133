"""Parse case files into trials. A typo is an error, and so is a case that asserts nothing."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from config.documents import Document, DocumentError, read_documents, readable_documents
from config.faults import FaultsError, did_you_mean, parse, refuse
from config.presets import policy_path, presets
from config.schemas import CustomTypes
from webhook.engine import NAMESPACE_LABELS, NOW, SCHEMAS, SERVED
from webhook.engine.exceptions import HOME
from webhook.engine.request import NAME_LABEL
from webhook.harness.bases import POD_KIND_NAMES, pod_path
from webhook.harness.case_file import CarriedCases, Case, CaseFile, ExpectedAnswer
from webhook.harness.case_request import namespace_in, request_of
from webhook.harness.derived import derive, expected_of
from webhook.harness.looked_up import look_up_faults, read_images
from webhook.harness.reviews import Admission
from webhook.harness.subject import Subject, WatchedEngine, single
from webhook.policy_sets.bound_objects import Catalogue
from webhook.policy_sets.policy_set import carries_cases, is_policy_object


@dataclass(frozen=True, slots=True)
class Trial:
    """One case for one kind: the tested policies, the request, and the expected answer.

    `path` is the path of the case in its document, such as `cases[3]`. `prefix` is the path of the
    pod's spec, put before the paths of a `pod` case. `looks_up` has the names of the look-ups that
    the case itself sets.
    """

    document: Document
    path: str
    name: str
    subject: Subject
    engine: WatchedEngine
    admission: Admission
    looked_up: dict[str, Any]
    expect: str | ExpectedAnswer
    prefix: str
    looks_up: frozenset[str] = frozenset()
    derived: bool = False

    @property
    def where(self) -> str:
        """File and line of the case."""
        return self.document.where(self.path)


def load_trials(
    path: Path, catalogue: Catalogue, home: str = HOME, custom: CustomTypes | None = None
) -> Iterator[Trial]:
    """Yield the trials of a case file, and of the cases that policy objects in it carry.

    Raises DocumentError after the last one, with file, line and message of every error.

    `home` is the namespace Gatewright is installed in, where exceptions from cluster policies take
    effect. `custom` are the types of custom kinds, by which rules in CEL are checked too.
    """
    documents, faults = readable_documents(read_documents(path))
    if not (documents or faults):
        raise DocumentError(f"{path}: the case file is empty")
    if any(carries_cases(each.value) for each in documents):
        documents = [
            document
            for document in documents
            if carries_cases(document.value) or not is_policy_object(document.value)
        ]
    try:
        yield from read_trials(documents, catalogue, home, custom=custom)
    except DocumentError as error:
        faults += error.lines
    if faults:
        raise DocumentError("\n".join(faults))


def read_trials(
    documents: Iterable[Document],
    catalogue: Catalogue,
    home: str = HOME,
    carrier: Subject | None = None,
    custom: CustomTypes | None = None,
) -> Iterator[Trial]:
    """Yield the trials of case files and policy objects. Raises DocumentError as `load_trials`.

    `carrier` is the policy set that carries the case files: then a file with `policies: PATH` tests
    this set, wherever the path leads.
    """
    places: dict[str, str] = {}  # line or path of each case so far, by name
    unusable = list[str]()
    for document in documents:
        faults: list[tuple[str, str]] = []
        trials: list[Trial] = []
        try:
            listed = _list_cases(document, catalogue, home, carrier, custom or CustomTypes())
        except FaultsError as error:
            unusable += _fault_lines(document, error.faults)
            continue
        # Cached by the parameters of a case; most cases set none.
        tried: dict[str, _PoliciesUnderTest] = {}
        for index, case in enumerate(listed.cases):
            at_case, key = f"{listed.at}[{index}]", repr(case.params)
            where = f"line {document.line(at_case)}" if document.has_lines else at_case
            if (other := places.setdefault(case.name, where)) != where:
                faults.append((f"{at_case}.name", f"the case at {other} has the same name"))
            try:
                if key not in tried:
                    tried[key] = listed.subject(case, at_case)
                    unusable += tried[key].unusable
            except FaultsError as error:
                faults += error.faults
                continue
            except DocumentError as error:
                unusable += error.lines
                break
            try:
                trials += _trials(tried[key], case, document, at_case)
            except FaultsError as error:
                faults += ((f"{at_case}.{path}", text) for path, text in error.faults)
        unusable += _fault_lines(document, faults)
        yield from trials
    if unusable:
        raise DocumentError("\n".join(dict.fromkeys(unusable)))


class _PoliciesUnderTest(NamedTuple):
    """The policies that a case tests, and a line for each fault of those that are not in force."""

    subject: Subject
    engine: WatchedEngine
    unusable: Sequence[str] = ()


class _ListedCases(NamedTuple):
    """The cases of a document, their path, and what returns the policies that a case tests."""

    at: str
    cases: list[Case]
    subject: Callable[[Case, str], _PoliciesUnderTest]


def _list_cases(
    document: Document,
    catalogue: Catalogue,
    home: str,
    carrier: Subject | None,
    custom: CustomTypes,
) -> _ListedCases:
    """Return the cases of a case file or a policy object. Raises FaultsError."""
    value = document.value
    if not carries_cases(value):
        file = parse(CaseFile, value)

        def of_file(case: Case, at_case: str) -> _PoliciesUnderTest:
            return _read_policies(file, case, document, at_case, catalogue, home, carrier, custom)

        return _ListedCases("cases", file.cases, of_file)
    carried = parse(CarriedCases, {"cases": value["spec"]["cases"]}, at="spec")

    def of_object(case: Case, at_case: str) -> _PoliciesUnderTest:
        if case.params is not None:
            refuse(f"{at_case}.params", "the policy object has the parameters")
        policy = value["spec"].get("policy")
        subject = Subject((document,), policy, is_set=False, custom=custom)
        return _PoliciesUnderTest(subject, subject.engine(catalogue))

    return _ListedCases("spec.cases", carried.cases, of_object)


def _fault_lines(document: Document, faults: Iterable[tuple[str, str]]) -> list[str]:
    return [_fault(document, *fault) for fault in dict.fromkeys(faults)]


def _fault(document: Document, path: str, text: str) -> str:
    return f"{document.where(path)}: {path}: {text}" if path else f"{document.where()}: {text}"


def _read_policies(
    file: CaseFile,
    case: Case,
    document: Document,
    at_case: str,
    catalogue: Catalogue,
    home: str,
    carrier: Subject | None,
    custom: CustomTypes,
) -> _PoliciesUnderTest:
    """Return the policies under test. Raises FaultsError, or DocumentError if none is valid."""
    if file.policies is not None:
        if carrier is not None and file.policies not in presets():
            return _PoliciesUnderTest(carrier, carrier.engine(catalogue))
        try:
            path = policy_path(file.policies, Path(document.source).parent)
        except ValueError as error:
            raise FaultsError([("policies", str(error))]) from None
        documents, unusable = readable_documents(read_documents(path))
        subject, invalid = Subject(tuple(documents), home=home, custom=custom).without_invalid(
            catalogue
        )
        unusable += invalid
        try:
            return _PoliciesUnderTest(subject, subject.engine(catalogue), unusable)
        except FaultsError:
            if unusable:  # no policy is valid: the reasons say more
                raise DocumentError("\n".join(unusable)) from None
            raise
    if file.policy not in catalogue:
        refuse("policy", f'no policy "{file.policy}"{did_you_mean(str(file.policy), catalogue)}')
    subject = single(
        str(file.policy), file.params if case.params is None else case.params, document
    )
    try:
        return _PoliciesUnderTest(subject, subject.engine(catalogue))
    except FaultsError as error:
        where = "" if case.params is None else f"{at_case}."
        raise FaultsError(
            (f"{where}{path.removeprefix('spec.')}", text) for path, text in error.faults
        ) from None


def _trials(
    tried: _PoliciesUnderTest, case: Case, document: Document, at_case: str
) -> Iterator[Trial]:
    """Yield the trials of one case. Raises FaultsError with paths below the case."""
    if case.each is not None and "kind" in case.object:
        refuse("object.kind", "not beside each, which names the kinds")
    for pod_kind in POD_KIND_NAMES if case.each == "pods" else case.each or [_kind(case)]:
        trial = _trial(tried, case, pod_kind, document, at_case)
        yield trial
        for how in case.also:
            try:
                admission, expect = derive(trial.admission, how), expected_of(trial.expect, how)
            except LookupError as error:
                raise FaultsError([("also", f"{how}: {error}")]) from None
            yield replace(
                trial,
                name=f"{trial.name} [{how}]",
                admission=admission,
                expect=expect,
                derived=True,
            )


def _trial(
    tried: _PoliciesUnderTest, case: Case, each: str, document: Document, at_case: str
) -> Trial:
    admission = request_of(case, each, tried.engine.policies)
    kind = str(admission.about["kind"])
    namespace = namespace_in(case)
    _, parent_kind = admission.parent_kind or ("", kind)
    if faults := list(look_up_faults(case.looked_up, parent_kind, namespace)):
        raise FaultsError(faults)
    if case.namespace_labels.get(NAME_LABEL, namespace) != namespace:
        refuse(f"namespace_labels.{NAME_LABEL}", "is the name of the namespace: use `namespace`")
    namespace_labels = {NAME_LABEL: namespace, **case.namespace_labels}
    return Trial(
        document,
        at_case,
        name=case.name if case.each is None else f"{case.name} [{each}]",
        subject=tried.subject,
        engine=tried.engine,
        admission=admission,
        looked_up=dict(read_images(case.looked_up))
        | {NAMESPACE_LABELS: namespace_labels, NOW: case.now, SERVED: (), SCHEMAS: CustomTypes},
        expect=case.expect,
        prefix=pod_path(kind) or "" if case.pod is not None else "",
        looks_up=frozenset(case.looked_up),
    )


def _kind(case: Case) -> str:
    kind = case.object.get("kind", "Pod" if case.pod is not None else None)
    if not isinstance(kind, str):
        refuse("object.kind", "missing; a case needs a kind, or each")
    return kind
