"""Each output format shows the whole report, and is valid for its readers."""

import json
import re
from importlib import import_module
from pathlib import Path

import pytest
from jsonschema import Draft4Validator, Draft202012Validator
from lxml import etree

from gatewright.outputs import (
    InputProblem,
    Report,
    ReportedViolation,
    SourceLocation,
    SubjectResult,
    github,
    junit,
    markdown,
    sarif,
    table,
)
from gatewright.outputs import json as json_output
from gatewright.outputs.choice import FORMATS
from gatewright.outputs.results import LEVELS, worst_first
from tests.config.reference import report_schema
from tests.config.regenerate import OUTDATED, stale
from tests.gatewright.outputs.reports import EMPTY, LIVE, REPLICAS, REPORT, SHOP, large

HERE = Path(__file__).parent
SARIF = Draft4Validator(json.loads((HERE / "sarif-2.1.0-rtm.5.json").read_text()))
JUNIT = etree.XMLSchema(etree.parse(HERE / "junit.xsd"))


WITHOUT_OBJECTS = {"github"}  # an annotation is at the object's line
DENIED = ReportedViolation(policy="few", message="too many.")


def undecided(name, namespace, *more):
    """Return the result of an object that a policy could not decide."""
    text = f"cannot be decided: the labels of namespace {namespace} are unknown."
    found = ReportedViolation(policy="few", message=text, action="Error")
    verdict = "denied" if more else "error"
    return SubjectResult(kind="Pod", name=name, verdict=verdict, violations=(*more, found))


def errors(validator, text):
    """Return the schema violations of a JSON text."""
    return [
        f"{list(error.absolute_path)}: {error.message}"
        for error in validator.iter_errors(json.loads(text))
    ]


@pytest.mark.parametrize(
    ("report", "fail_on", "code"),
    [
        (REPORT, "deny", 3),
        (Report("check", (SHOP,)), "deny", 1),
        (Report("check", (SHOP,)), "never", 0),
        (Report("check", (LIVE,)), "warn", 0),
        (Report("check", (undecided("a", "shop"),)), "never", 3),
        (Report("check", (undecided("a", "shop", DENIED),)), "never", 3),
        (EMPTY, "deny", 0),
    ],
)
def test_the_exit_code(report, fail_on, code):
    """It is 3 if something could not be judged, 1 if a failing level was reported, else 0."""
    assert report.exit_code(fail_on) == code


def test_the_worst_violations_come_first():
    """Violations are sorted by level, then by severity."""
    found = [each.policy for _, each in worst_first(REPORT)]
    assert found == ["replica-limits", "image-registries", "probes"]


def test_a_table_has_a_line_for_each_result():
    """Its violations follow, with file and line, and the fields that policies set."""
    assert table.render(REPORT).splitlines() == [
        "denied     Deployment production/shop  (app/shop, 1.yaml:3)",
        f"  app/shop, 1.yaml:8: replica-limits: {REPLICAS.message}",
        "  app/shop, 1.yaml:19: image-registries (warn): "
        'spec.template.spec.containers[name=<app>].image: "a|b" & 100%; images must come from there. Push it.',
        "mutated    WebApp production/web  (app/web.yaml:1)",
        '  add /spec/a {"b":1}',
        "audited    Pod lab/job-1",
        "  probes (audit): readinessProbe missing\x07.",
        "unmatched  ConfigMap lab/settings  (c.yaml:1)",
        "4 objects: 1 denied, 1 mutated, 1 audited, 1 unmatched",
    ]


def test_a_table_has_each_reason_why_objects_are_undecided_once():
    """The first object has it, with the number of the others; all are counted."""
    report = Report(
        "check",
        (
            undecided("a", "shop"),
            undecided("b", "shop"),
            undecided("c", "shop", DENIED),
            undecided("d", "lab"),
            undecided("e", "lab"),
            undecided("f", "x"),
        ),
    )
    assert table.render(report).splitlines() == [
        "error   Pod a",
        "  few: cannot be decided: the labels of namespace shop are unknown. Also 2 more objects.",
        "denied  Pod c",
        "  few: too many.",
        "error   Pod d",
        "  few: cannot be decided: the labels of namespace lab are unknown. Also 1 more object.",
        "error   Pod f",
        "  few: cannot be decided: the labels of namespace x are unknown.",
        "6 objects: 5 error, 1 denied",
    ]
    assert json_output.render(report).count("labels of namespace shop are unknown") == 3


def test_a_table_on_a_terminal_breaks_no_words():
    """Lines are at most as wide as the terminal if words allow it; no text is lost."""
    lines = table.render(REPORT, 80).splitlines()
    words = [word for line in lines for word in line.split()]
    assert words == table.render(REPORT).split()
    assert [line for line in lines if len(line) > 80] == []
    assert all(line == line.rstrip() for line in lines)


def test_a_command_can_be_copied_from_a_terminal():
    """It is one line of its own, which the terminal wraps without a line break."""
    command = (
        'kubectl patch validatingwebhookconfiguration guard --type=json -p \'[{"op": "test"}]\''
    )
    message = f"guard judges its own pods. Fix: exclude guard: {command}"
    violation = ReportedViolation(policy="own-pods", message=message)
    result = SubjectResult(kind="Pod", name="x", verdict="critical", violations=(violation,))
    report = Report("doctor", (result,))
    assert table.render(report).splitlines()[1] == f"  own-pods: {message}"
    assert table.render(report, 40).splitlines()[1:-1] == [
        "  own-pods: guard judges its own pods.",
        "    Fix: exclude guard:",
        f"    {command}",
    ]


def test_only_verdicts_are_coloured():
    """Other text has no colour."""
    assert table.render(Report("check", (SHOP,)), colours=True).startswith(
        "\x1b[31mdenied\x1b[0m  Deployment"
    )


def test_every_format_is_documented():
    """The page about CI has a row for each, in the order of --help."""
    page = (Path(__file__).parents[3] / "docs/ci.md").read_text()
    rows = page.partition("| format | for |\n")[2].partition("\n\n")[0]
    documented = tuple(re.findall(r"^\| `(\w+)` \|", rows, re.MULTILINE))
    assert documented == FORMATS, "give each format a row in docs/ci.md, in the order of FORMATS"


@pytest.mark.parametrize("page", ["README.md", "docs/doctor.md"])
def test_pages_that_list_formats_list_all(page):
    """They name each format but the default one."""
    words = set(re.findall(r"\w+", (Path(__file__).parents[3] / page).read_text()))
    assert set(FORMATS[1:]) - words == set(), f"name these formats in {page}"


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_shows_every_violation_and_problem(format):
    """Object, policy, message and place of each; problems too, except in a table, beside which they are printed."""
    violations = tuple(
        ReportedViolation(
            policy=f"policy-{level}",
            message=f"message {level}",
            level=level,
            place=SourceLocation("shop.yaml", line),
        )
        for line, level in enumerate(LEVELS, start=7)
    )
    result = SubjectResult(
        kind="Pod",
        name="shop",
        verdict="denied",
        place=SourceLocation("shop.yaml", 3),
        violations=violations,
    )
    problem = InputProblem("not YAML", SourceLocation("broken.yaml", 2))
    text = import_module(f"gatewright.outputs.{format}").render(
        Report("check", (result,), (problem,))
    )
    expected = {"shop.yaml"}
    expected |= {word for each in violations for word in (each.policy, each.message)}
    if format not in WITHOUT_OBJECTS:
        expected |= {"Pod", "shop"}
    if format != "table":
        expected |= {"broken.yaml", "not YAML"}
    assert {word for word in expected if word not in text} == set(), "show these"


@pytest.mark.parametrize("report", [REPORT, EMPTY], ids=["all", "nothing"])
def test_json_output_matches_its_schema(report):
    """The output is valid for the schema in the reference."""
    schema = report_schema()
    assert stale({"docs/reference/report.schema.json": schema}) == [], OUTDATED
    assert errors(Draft202012Validator(json.loads(schema)), json_output.render(report)) == []


@pytest.mark.parametrize("report", [REPORT, EMPTY], ids=["all", "nothing"])
def test_sarif_output_matches_the_official_schema(report):
    """The official schema of SARIF 2.1.0 accepts it."""
    assert errors(SARIF, sarif.render(report)) == []


def run_of(report):
    """The run of a SARIF log."""
    (run,) = json.loads(sarif.render(report))["runs"]
    return run


def test_sarif_has_rules_places_and_severities():
    """Paths are relative and percent-encoded, lines and columns exact, severities GitHub's; each rule has help."""
    run = run_of(REPORT)
    first, second, live = run["results"]
    assert [each["id"] for each in run["tool"]["driver"]["rules"]] == [
        "replica-limits",
        "image-registries",
        "probes",
    ]
    assert run["tool"]["driver"]["rules"][0]["help"] == {"text": "Few replicas.\n\nWhy: nodes."}
    assert run["tool"]["driver"]["rules"][1]["properties"]["security-severity"] == "8.0"
    assert (first["ruleId"], first["level"], first["message"]["text"]) == (
        "replica-limits",
        "error",
        REPLICAS.message,
    )
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "app/shop%2C%201.yaml"},
        "region": {"startLine": 8, "startColumn": 3},
    }
    assert second["level"] == "warning"
    assert live["locations"][0]["physicalLocation"]["artifactLocation"] == {
        "uri": "cluster/Pod%20lab/job-1"
    }
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert (notification["message"]["text"], run["invocations"][0]["executionSuccessful"]) == (
        "not YAML: a tab",
        False,
    )


def test_fingerprints_do_not_change_when_lines_move():
    """They depend on policy, object and field; a second violation of the same field has another one."""
    moved = ReportedViolation(
        policy="replica-limits",
        message="else",
        path="spec.replicas",
        place=SourceLocation("other.yaml", 99, 1),
    )
    results = (
        SHOP,
        SubjectResult(
            kind="Deployment",
            namespace="production",
            name="shop",
            verdict="denied",
            violations=(moved, moved),
        ),
    )
    one = [each["partialFingerprints"] for each in run_of(Report("check", results[:1]))["results"]]
    other = [
        result["partialFingerprints"] for result in run_of(Report("check", results[1:]))["results"]
    ]
    assert one[0] == other[0]
    assert other[0] != other[1]


@pytest.mark.long
def test_sarif_keeps_githubs_limit():
    """The first 25,000 violations are included, and a notification has the number of the others."""
    run = run_of(large(25_010))
    assert len(run["results"]) == 25_000
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["message"]["text"] == "10 more violations are left out; the limit is 25000"


@pytest.mark.parametrize("report", [REPORT, EMPTY, large(3)], ids=["all", "nothing", "three"])
def test_junit_output_matches_its_schema(report):
    """Jenkins' schema accepts it."""
    JUNIT.assertValid(etree.fromstring(junit.render(report).encode()))


def test_junit_counts_failures_errors_and_skips():
    """Each file is a suite and each object a case; violations that do not fail are in its output."""
    root = etree.fromstring(junit.render(REPORT).encode())
    assert dict(root.attrib) == {
        "name": "gatewright check",
        "tests": "5",
        "failures": "1",
        "errors": "1",
    }
    cases = [
        (case.get("classname"), case.get("name"), [each.tag for each in case])
        for case in root.iterfind(".//testcase")
    ]
    assert cases == [
        ("cluster", "Pod lab/job-1", ["system-out"]),
        ("app/shop, 1.yaml", "Deployment production/shop", ["failure", "system-out"]),
        ("app/web.yaml", "WebApp production/web", []),
        ("c.yaml", "ConfigMap lab/settings", ["skipped"]),
        ("broken.yaml", "line 2", ["error"]),
    ]
    failure = root.find(".//failure")
    assert (failure.get("type"), failure.get("message")) == ("replica-limits", REPLICAS.message)


def test_annotations_are_escaped():
    """The escapes are those of GitHub's workflow commands."""
    assert github.render(REPORT).splitlines() == [
        "::error file=broken.yaml,line=2,title=not-judged::not YAML: a tab",
        f"::error file=app/shop%2C 1.yaml,line=8,title=replica-limits::{REPLICAS.message}",
        "::warning file=app/shop%2C 1.yaml,line=19,title=image-registries::"
        'spec.template.spec.containers[name=<app>].image: "a|b" & 100%25; images must come from there. Push it.',
        "::notice title=probes::Pod lab/job-1: readinessProbe missing\x07.",
        "4 objects: 1 denied, 1 mutated, 1 audited, 1 unmatched",
    ]


def test_annotations_keep_githubs_limit():
    """Ten annotations of each level are printed; the rest is in the job summary."""
    lines = github.render(large(12)).splitlines()
    assert (len(lines), lines[-1]) == (11, "12 objects: 12 denied; 2 more in the job summary")


def test_markdown_escapes_messages():
    """Nothing in a message is rendered as Markdown or HTML."""
    text = markdown.render(REPORT)
    assert text.splitlines()[:6] == [
        "### Gatewright check: not everything could be judged",
        "",
        "4 objects: 1 denied, 1 mutated, 1 audited, 1 unmatched",
        "",
        "| | Object | Policy | Violation |",
        "|---|---|---|---|",
    ]
    assert r'containers\[name=\<app\>\].image: "a\|b" \& 100%; images' in text
    assert "- broken.yaml:2: not YAML: a tab" in text
    assert r"- 2026-12-01T00:00:00Z: replica-limits: sale \<now\>" in text


def test_markdown_keeps_githubs_limit():
    """A comment has at most 65,536 characters, and states how many violations are left out."""
    text = markdown.render(large(5_000))
    assert 50_000 < len(text) < 65_536
    shown = text.count("| ❌ |")
    assert text.rstrip().endswith(f"and {5_000 - shown} more violations")


def test_a_problem_without_a_file_has_no_place():
    """The problem is about the command's input as a whole."""
    report = Report("check", problems=(InputProblem("no Kubernetes objects"),))
    assert github.render(report).startswith("::error title=not-judged::no Kubernetes objects\n")
    assert errors(SARIF, sarif.render(report)) == []
    JUNIT.assertValid(etree.fromstring(junit.render(report).encode()))


def test_unreadable_files_leave_room_for_violations_on_github():
    """Three come first, then violations, up to ten in all."""
    problems = tuple(InputProblem("not YAML", SourceLocation(f"{n}.yaml")) for n in range(12))
    lines = github.render(Report("check", (SHOP,), problems)).splitlines()
    files = [re.search("file=([^,]+),", line)[1] for line in lines if line.startswith("::error")]
    assert files == [
        "0.yaml",
        "1.yaml",
        "2.yaml",
        "app/shop%2C 1.yaml",
        *(f"{n}.yaml" for n in range(3, 9)),
    ]


def test_a_line_of_several_policies_is_printed_once():
    """An example is that the labels of a namespace are unknown."""
    same = [ReportedViolation(policy=name, message="cannot be decided") for name in ("a", "b")]
    result = SubjectResult(kind="Pod", name="x", verdict="error", violations=tuple(same))
    assert table.render(Report("check", (result,))).splitlines()[1] == "  a, b: cannot be decided"
