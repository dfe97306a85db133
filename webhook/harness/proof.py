"""Runs the cases that policies carry, before the policies go in force."""

import time
from collections.abc import Callable, Iterable, Sequence

from config.documents import Document, DocumentError
from kube.resource import JsonObject
from webhook.engine.exceptions import HOME
from webhook.harness.case_file import ExpectedAnswer
from webhook.harness.cases import Trial, read_trials
from webhook.harness.subject import Subject
from webhook.harness.trial import attempt
from webhook.policy_sets.bound_objects import Catalogue
from webhook.policy_sets.policy_set import FailedCasesError, is_case_file

MAX_CASES = 10_000
BUDGET_SECONDS = 30.0  # of CPU, for all cases of a set
MAX_REPORTED = 3  # failing cases in a message
MAX_DIFFERENCES = 5  # of each


def prove(
    documents: Iterable[Document],
    catalogue: Catalogue,
    home: str = HOME,
    *,
    carrier: Sequence[Document] = (),
    clock: Callable[[], float] = time.thread_time,
) -> list[JsonObject]:
    """Run the cases of these documents; the documents of a set that carries them are `carrier`.

    Return the objects that cases create and expect to be denied.

    Raises FailedCasesError with the failing cases, or if there are too many cases, or if they take
    more than BUDGET_SECONDS by `clock` (seconds), by default the CPU time of this thread.
    """
    documents = list(documents)
    if (number := sum(map(_count, documents))) > MAX_CASES:
        raise FailedCasesError(f"{number:,} cases; at most {MAX_CASES:,} are run")
    started, failed, denied = clock(), list[str](), list[JsonObject]()
    try:
        for trial in read_trials(documents, catalogue, home, Subject(tuple(carrier), home=home)):
            if differences := attempt(trial).differences:
                failed.append(_describe(trial, differences))
            elif (object := _denied_object(trial)) is not None:
                denied.append(object)
            if clock() - started > BUDGET_SECONDS:
                raise FailedCasesError(
                    f"{_name(trial)}: the cases took more than {BUDGET_SECONDS:g} s of CPU up to "
                    "here; the others were not run. Carry fewer, or smaller ones"
                )
    except DocumentError as error:
        failed = [*error.lines, *failed]
    if failed:
        more = len(failed) - MAX_REPORTED
        others = [f"and {more:,} more failing cases"] if more > 0 else []
        raise FailedCasesError("\n".join([*failed[:MAX_REPORTED], *others]))
    return denied


def _denied_object(trial: Trial) -> JsonObject | None:
    """Return the object that a trial creates, if it must be denied."""
    admission, expect = trial.admission, trial.expect
    is_denied = isinstance(expect, ExpectedAnswer) and bool(expect.denied)
    if is_denied and admission.operation == "CREATE" and not admission.subresource:
        return admission.object
    return None


def _count(document: Document) -> int:
    value = document.value
    cases = value["cases"] if is_case_file(value) else value["spec"]["cases"]
    return len(cases)


def _describe(trial: Trial, differences: Sequence[str]) -> str:
    """Return what a case expected and what came instead."""
    shown = "; ".join(differences[:MAX_DIFFERENCES])
    more = len(differences) - MAX_DIFFERENCES
    return f"{_name(trial)}: {shown}" + (f"; and {more} more differences" if more > 0 else "")


def _name(trial: Trial) -> str:
    return f'{trial.where}: case "{trial.name}"'
