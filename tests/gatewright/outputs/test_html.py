"""The HTML report: one self-contained file that works in a browser."""

import re
from dataclasses import replace

import pytest

from gatewright.outputs import PolicyInfo, html
from tests.gatewright.outputs import chromium
from tests.gatewright.outputs.reports import EMPTY, REPLICAS, REPORT, large

browser = pytest.mark.skipif(not chromium.is_installed(), reason="needs chromium and chromedriver")
SHOWN = "return document.querySelectorAll('#list li:not([hidden])').length"
GROUPS = "return [...document.querySelectorAll('#list > details:not([hidden]) > summary')].map(each => each.innerText)"


def changed(id, value):
    """A script that fills in a field as a user does."""
    return f"""
        const field = document.getElementById("{id}");
        field.value = {value!r};
        field.dispatchEvent(new Event("change"));
    """


def test_the_page_has_the_whole_report():
    """It has violations with field, value, rule and fix; problems; exceptions that expire soon; policy pages."""
    page = html.render(REPORT)
    for said in (
        "4 objects: 1 denied, 1 mutated, 1 audited, 1 unmatched; 3 violations",
        "<dt>Field<dd>spec.replicas<dt>Found<dd>11<dt>Rule<dd>production workloads cannot exceed 10 replicas",
        "broken.yaml:2<br>not YAML: a tab",
        "<td>2026-12-01T00:00:00Z</td><td>replica-limits</td><td>sale &lt;now&gt;</td>",
        "<pre>Few replicas.\n\nWhy: nodes.</pre>",
    ):
        assert said in page


def test_objects_cannot_inject_markup():
    """The contents of a manifest are shown as text."""
    evil = replace(REPLICAS, found="<script>alert(1)</script>", policy='"><img src=x onerror=alert(1)>')
    page = html.render(replace(EMPTY, results=(replace(REPORT.results[0], violations=(evil,)),)))
    assert page.count("<script>") == 1
    assert "<img" not in page


def test_the_page_needs_no_network():
    """It contains no URL, and its content security policy allows none."""
    page = html.render(REPORT)
    assert re.findall(r"(?:https?:)?//[a-z]", page) == []
    assert "default-src 'none'" in page


def test_ten_thousand_violations_fit_into_four_megabytes():
    """The paths, values, rules and fixes are as long as real ones."""
    image = replace(
        REPLICAS,
        path="spec.template.spec.containers[name=app].image",
        found='"nginx:1.21" comes from docker.io',
        rule="images must come from approved registry registry.company.com",
        fix="push it there, or ask for an exception",
    )
    report = large(10_000)
    results = tuple(replace(each, violations=(image,)) for each in report.results)
    assert len(html.render(replace(report, results=results)).encode()) <= 4_000_000


def test_a_page_without_violations_says_so():
    """It has no filters."""
    page = html.render(EMPTY)
    assert "No violations" in page
    assert "<form" not in page


@browser
@pytest.mark.long
@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)], ids=["desktop", "phone"])
def test_the_page_works_in_a_browser(tmp_path, width, height):
    """Search, filters, summary and grouping work; nothing is wider than the window, and the console has no error."""
    pages = {"replica-limits": PolicyInfo("replica-limits", documentation="x" * 200)}
    (tmp_path / "report.html").write_text(html.render(replace(large(1_000), policies=pages)))
    with chromium.window(width, height, tmp_path / "profile") as page:
        page.open(tmp_path / "report.html")
        assert page.run("return [innerWidth, document.documentElement.scrollWidth]") == [width, width]
        assert (page.run(SHOWN), page.run(GROUPS)) == (1_000, ["replica-limits 1000"])
        page.run(changed("n", "team-3"))
        assert (page.run(SHOWN), page.run("return document.getElementById('count').value")) == (100, "100 shown")
        page.run("document.querySelector('button[data-n=team-7]').click()")
        assert (page.run(SHOWN), page.run("return document.getElementById('n').value")) == (100, "team-7")
        page.run(changed("n", "*"))
        page.run(changed("g", "n"))
        assert page.run(GROUPS) == [f"team-{number} 100" for number in range(10)]
        page.run("document.getElementById('q').value = 'SHOP-99 spec.replicas'; show()")
        assert (page.run(SHOWN), page.run(GROUPS)) == (11, [*(f"team-{n} 1" for n in range(9)), "team-9 2"])
        assert page.log() == []


@browser
@pytest.mark.long
def test_every_control_has_a_name(tmp_path):
    """Controls without text have an accessible name, and all are reachable by keyboard."""
    (tmp_path / "report.html").write_text(html.render(REPORT))
    with chromium.window(1280, 900, tmp_path / "profile") as page:
        page.open(tmp_path / "report.html")
        unnamed = """return [...document.querySelectorAll("input, select, button, a, summary")]
            .filter(each => !(each.labels?.length || each.ariaLabel || each.innerText.trim()) || each.tabIndex < 0)
            .map(each => each.outerHTML)"""
        assert page.run(unnamed) == []
        assert page.log() == []
