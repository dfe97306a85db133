"""JUnit XML for Jenkins, GitLab and others: one suite per file, one test case per result."""

from collections.abc import Iterable
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from gatewright.outputs.results import (
    PROBLEM,
    InputProblem,
    Report,
    ReportedViolation,
    SubjectResult,
)


def render(report: Report) -> str:
    """Return the report as JUnit XML.

    Violations of level error are failures, unjudged objects are errors.
    """
    root = Element("testsuites", name=f"gatewright {report.command}")
    results = sorted(report.results, key=lambda each: each.place.file)
    for file, group in groupby(results, key=lambda each: each.place.file):
        _suite(
            root,
            file or "cluster",
            list(group),
            [each for each in report.problems if each.place.file == file],
        )
    judged = {each.place.file for each in results}
    left = sorted(
        (each for each in report.problems if each.place.file not in judged),
        key=lambda each: each.place.file,
    )
    for file, problems in groupby(left, key=lambda each: each.place.file):
        _suite(root, file or report.command, [], list(problems))
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _suite(
    root: Element, file: str, results: Iterable[SubjectResult], problems: Iterable[InputProblem]
) -> None:
    suite = SubElement(root, "testsuite", name=_text(file))
    for result in results:
        case = SubElement(
            suite, "testcase", classname=_text(file), name=_text(result.title), time="0"
        )
        is_undecided = result.verdict == "error"
        for violation in result.violations:
            if violation.level == "error":
                name = "error" if is_undecided or violation.action == "Error" else "failure"
                element = SubElement(
                    case, name, type=_text(violation.policy), message=_text(violation.message)
                )
                element.text = _text(_line(violation))
        if result.verdict == "unmatched":
            SubElement(case, "skipped", message="no policy applies to it")
        lesser = [_line(each) for each in result.violations if each.level != "error"]
        if lesser:
            SubElement(case, "system-out").text = _text("\n".join(lesser))
    for problem in problems:
        case = SubElement(
            suite, "testcase", classname=_text(file), name=f"line {problem.place.line}", time="0"
        )
        SubElement(case, "error", type=PROBLEM, message=_text(problem.message))
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(sum(case.find("failure") is not None for case in suite)))
    suite.set("errors", str(sum(case.find("error") is not None for case in suite)))
    suite.set("skipped", str(sum(case.find("skipped") is not None for case in suite)))


def _line(each: ReportedViolation) -> str:
    return f"{each.place}: {each.policy}: {each.message}"


def _text(text: str) -> str:
    """Return a text without the control characters that XML does not allow."""
    return (
        text
        if text.isprintable()
        else "".join(char if char.isprintable() or char == "\n" else " " for char in text)
    )
