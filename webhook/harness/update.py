"""Rewrites the expectations of a case file and keeps everything else, comments included."""

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import orjson
import yaml

from config.edits import EditableText, TextEdit, apply_edits
from webhook.harness.case_file import Expected, ExpectedAnswer
from webhook.harness.cases import Trial
from webhook.harness.reviews import ReviewAnswer
from webhook.harness.trial import (
    PolicyMessage,
    Tried,
    code_of,
    is_expected,
    list_audited,
    list_denials,
    list_warnings,
)

WIDTH = 120  # maximum line length; a longer flow collection is written as a block


class CannotUpdateError(ValueError):
    """No expectation describes the actual answer; the message has the reason."""


def update_expectations(text: str, cases: Iterable[Sequence[Tried]]) -> tuple[str, list[str]]:
    """Return the text of a case file with the expectations of these cases replaced, and the errors.

    A case is given by its trials, which must have the same answer. Derived trials follow the
    others.
    """
    edits: list[TextEdit] = []
    faults: list[str] = []
    before = EditableText(text)
    for case in cases:
        trial = case[0].trial
        try:
            wanted = _agree(case)
        except CannotUpdateError as error:
            faults.append(f"{trial.where}: {trial.path}: not updated: {error}")
            continue
        node = _case(trial.document.node, trial.path)
        kept = _edit_messages(before, _pair(node, "expect")[1], trial, wanted)
        edits += [_whole(before, node, wanted)] if kept is None else kept
    return apply_edits(text, edits), faults


def _agree(case: Sequence[Tried]) -> Any:
    answers = {
        orjson.dumps(got): got
        for got in (
            expectation_of(tried_case.trial, tried_case.answer)
            for tried_case in case
            if not tried_case.trial.derived
        )
    }
    if len(answers) != 1:
        raise CannotUpdateError("the answers differ between kinds; write one case for each")
    return next(iter(answers.values()))


def expectation_of(trial: Trial, answer: ReviewAnswer) -> Any:
    """Return the expectation that this answer meets."""
    if not answer.outcomes:
        return "not-matched"
    if code_of(answer) == 500 or answer.patched_twice:
        raise CannotUpdateError("a policy failed")
    got: dict[str, Any] = {}
    if (code := code_of(answer)) is not None:
        got["denied" if code == 403 else "malformed"] = _describe(trial, list_denials(answer))
    elif patched := _difference(trial.admission.object, answer.object):
        got["patched"] = patched
    for name, reported in (("warned", list_warnings(answer)), ("audited", list_audited(answer))):
        if reported:
            got[name] = _describe(trial, reported)
    return got or "allowed"


def _describe(trial: Trial, reported: list[PolicyMessage]) -> list[dict[str, str]]:
    """Return violations as a case lists them.

    Paths are relative to the pod's spec; the policy is named if there are several.
    """
    prefix = f"{trial.prefix}." if trial.prefix else ""
    several = len(trial.engine.policies) > 1
    return [
        {"path": message.rpartition(": ")[0].partition(": ")[0].removeprefix(prefix)}
        | ({"policy": policy} if several else {})
        | {"message": message.removeprefix(prefix)}
        for policy, message in reported
    ]


def _difference(old: Any, new: Any) -> Any:
    """Return the value that, merged over `old`, gives `new`."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {
            key: _difference(old.get(key), value)
            for key, value in new.items()
            if old.get(key) != value
        }
    return new


def _case(root: yaml.Node, path: str) -> yaml.MappingNode:
    above, _, index = path.removesuffix("]").rpartition("[")
    cases = root
    for key in above.split("."):
        cases = _pair(cases, key)[1]
    assert isinstance(cases, yaml.SequenceNode)
    return cases.value[int(index)]  # type: ignore[no-any-return]


def _pair(node: yaml.Node, key: str) -> tuple[yaml.Node, yaml.Node]:
    assert isinstance(node, yaml.MappingNode)
    return next((name, value) for name, value in node.value if name.value == key)


def _edit_messages(
    text: EditableText, node: yaml.Node, trial: Trial, wanted: Any
) -> list[TextEdit] | None:
    """Return edits of the messages only.

    None unless a block expects the same violations in the same order.
    """
    if not isinstance(node, yaml.MappingNode) or node.flow_style:
        return None
    if not isinstance(wanted, dict) or not isinstance(trial.expect, ExpectedAnswer):
        return None
    if [key.value for key, _ in node.value] != list(wanted):
        return None
    edits: list[TextEdit] = []
    for key, items in node.value:
        got = wanted[key.value]
        expected: list[Expected] = getattr(trial.expect, key.value)
        is_block = isinstance(items, yaml.SequenceNode) and not items.flow_style
        if not is_block or len(items.value) != len(got):
            return None
        for item, old, new in zip(items.value, expected, got, strict=True):
            if old.path != new["path"] or item.flow_style:
                return None
            if not is_expected(old, (new.get("policy", old.policy or ""), new["message"]), ""):
                edits.append(_message(text, item, new["message"]))
    return edits


def _message(text: EditableText, item: yaml.MappingNode, message: str) -> TextEdit:
    for key, value in item.value:
        if key.value == "message":
            return TextEdit(text.at(value.start_mark), text.end(value), _flow(message))
    last_key, last = item.value[-1]
    end = text.end(last)
    indent = " " * last_key.start_mark.column
    return TextEdit(end, end, f"\n{indent}message: {_flow(message)}")


def _whole(text: EditableText, case: yaml.MappingNode, wanted: Any) -> TextEdit:
    key, value = _pair(case, "expect")
    start, end = text.at(key.end_mark), text.end(value)
    is_json = isinstance(key, yaml.ScalarNode) and key.style == '"'
    written = orjson.dumps(wanted).decode() if is_json else _flow(wanted)
    column = key.start_mark.column
    if isinstance(wanted, str) or case.flow_style or column + len(f"expect: {written}") <= WIDTH:
        return TextEdit(start, end, f": {written}")
    block = yaml.safe_dump(wanted, sort_keys=False, allow_unicode=True, width=WIDTH - column)
    indented = textwrap.indent(block, " " * (column + 2))
    return TextEdit(start, end, f":\n{indented}".rstrip("\n"))


def _flow(value: Any) -> str:
    """Return a value on one line."""
    written = yaml.safe_dump(
        value, sort_keys=False, allow_unicode=True, default_flow_style=True, width=float("inf")
    )
    return written.removesuffix("\n").removesuffix("\n...")
