"""The rule that most policies are: a field of certain records must not have a value, unless it is allowed."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from webhook.engine.fields import Fields, steps_of
from webhook.engine.request import Request
from webhook.engine.violation import UNSET, Violation, shown

Judge = Callable[[Request, Any], Iterator[Violation]]


def forbids(
    on: Callable[[Request, Any], Iterable[Fields]],
    fields: str | Iterable[str] | Callable[[Any], Iterable[str]],
    read: Callable[[Fields, str], Any],
    *,
    unless: Callable[[Any, Any], bool],
    rule: str | Callable[[Any], str],
    fix: str,
    exempt: Callable[[Request, Any], bool] | None = None,
    mended: Any = UNSET,
    compared: Callable[[Fields], Any] | None = None,
) -> Judge:
    """Return a `validate` that yields a violation for each field of each record, unless its value is allowed.

    `on` returns the records, `fields` are the paths below each, `read` is the typed getter (`Fields.boolean` …).
    `unless` gets the value, None where there is none, and the parameters. `exempt` leaves a whole request alone.
    `mended` is a value that mends the field, None where it must go. `compared` is what an update must not change of a
    record, where the value alone does not say how bad it is.
    """
    declared = () if callable(fields) else _by_first_step((fields,) if isinstance(fields, str) else fields)

    def validate(request: Request, params: Any) -> Iterator[Violation]:
        if exempt is not None and exempt(request, params):
            return
        paths = _by_first_step(fields(params)) if callable(fields) else declared
        is_optional = unless(None, params)
        for record in on(request, params):
            for first, path in paths:
                if is_optional and first not in record.value:
                    continue  # most paths of most records: reading one costs more
                value = read(record, path)
                if not unless(value, params):
                    broken = rule if isinstance(rule, str) else rule(params)
                    found = "unset" if value is None else shown(value)
                    raw = value if compared is None else compared(record)
                    yield record.violation(path, raw, broken, fix, found=found, mended=mended)

    validate.__module__ = unless.__module__  # the page of the policy is the docstring of the module that declares it
    return validate


def _by_first_step(paths: Iterable[str]) -> tuple[tuple[str, str], ...]:
    return tuple((steps_of(path)[0], path) for path in paths)


def containers(request: Request, params: Any) -> Iterable[Fields]:
    """Return all containers."""
    return request.containers()


def pods(request: Request, params: Any) -> Iterable[Fields]:
    """Return the pod."""
    pod = request.pod()
    return () if pod is None else (pod,)


def volumes(request: Request, params: Any) -> Iterable[Fields]:
    """Return the volumes of the pod."""
    return request.volumes()
