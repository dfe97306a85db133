"""Escape the texts of a report, so that names of objects and files cannot start a CI command."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

from config.printable import printable, printable_lines
from gatewright.outputs.results import Report

LINES = ("message", "notes")  # fields whose texts may have several lines


def printable_report(report: Report) -> Report:
    """Return the report with every text escaped, for formats that people read.

    Summaries and documentation of policies are not escaped.
    """
    found: Report = _escape(report)
    return found


def _escape(value: Any, *, has_lines: bool = False) -> Any:
    if isinstance(value, str):
        return printable_lines(value) if has_lines else printable(value)
    if isinstance(value, tuple):
        return tuple(_escape(each, has_lines=has_lines) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in fields(value)]
        changed = {name: _escape(getattr(value, name), has_lines=name in LINES) for name in names}
        return replace(value, **changed)
    return value
