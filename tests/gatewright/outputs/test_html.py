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

UNREADABLE = """
    const channels = colour => colour.match(/[\\d.]+/g).map(Number);
    const light = ([red, green, blue]) => [red, green, blue]
        .map(each => each / 255).map(each => each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4)
        .reduce((sum, each, index) => sum + each * [0.2126, 0.7152, 0.0722][index], 0);
    const contrast = (one, other) => {
        const [more, less] = [light(channels(one)), light(channels(other))].sort((a, b) => b - a);
        return (more + 0.05) / (less + 0.05);
    };
    const ground = element => {
        const colour = getComputedStyle(element).backgroundColor;
        return channels(colour)[3] === 0 ? ground(element.parentElement) : colour;
    };
    const found = [];
    for (const each of document.querySelectorAll("body *")) {
        const style = getComputedStyle(each), name = `${each.tagName} ${each.id || each.className}`;
        const has = [...each.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
        if (has && each.checkVisibility() && contrast(style.color, ground(each)) < 4.5) found.push(name);
        if (each.placeholder && contrast(getComputedStyle(each, "::placeholder").color, ground(each)) < 4.5)
            found.push(`placeholder of ${name}`);
        if (each.matches("input, select, button") && each.checkVisibility() && style.borderTopWidth !== "0px"
            && contrast(style.borderTopColor, ground(each.parentElement)) < 3) found.push(`border of ${name}`);
    }
    return found;
"""


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
    evil = replace(
        REPLICAS, found="<script>alert(1)</script>", policy='"><img src=x onerror=alert(1)>'
    )
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


def test_a_page_without_violations():
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
        assert page.run("return [innerWidth, document.documentElement.scrollWidth]") == [
            width,
            width,
        ]
        assert (page.run(SHOWN), page.run(GROUPS)) == (1_000, ["replica-limits 1000"])
        page.run(changed("n", "team-3"))
        assert (page.run(SHOWN), page.run("return document.getElementById('count').value")) == (
            100,
            "100 shown",
        )
        page.run("document.querySelector('button[data-n=team-7]').click()")
        assert (page.run(SHOWN), page.run("return document.getElementById('n').value")) == (
            100,
            "team-7",
        )
        page.run(changed("n", "*"))
        page.run(changed("g", "n"))
        assert page.run(GROUPS) == [f"team-{number} 100" for number in range(10)]
        page.run("document.getElementById('q').value = 'SHOP-99 spec.replicas'; show()")
        assert (page.run(SHOWN), page.run(GROUPS)) == (
            11,
            [*(f"team-{n} 1" for n in range(9)), "team-9 2"],
        )
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


@browser
@pytest.mark.long
def test_everything_can_be_read_in_both_colour_schemes_and_on_paper(tmp_path):
    """Contrast is at least 4.5 for text and 3 for the edges of controls (WCAG AA); paper is white."""
    (tmp_path / "report.html").write_text(html.render(REPORT))
    with chromium.window(1280, 900, tmp_path / "profile") as page:
        for scheme, media, ground in (
            ("light", "screen", "rgb(255, 255, 255)"),
            ("dark", "screen", "rgb(20, 23, 30)"),
            ("dark", "print", "rgb(255, 255, 255)"),
        ):
            page.prefer(scheme, media)
            page.open(tmp_path / "report.html")
            assert page.run("return getComputedStyle(document.body).backgroundColor") == ground
            assert page.run(UNREADABLE) == []


@browser
@pytest.mark.long
def test_the_keyboard_reaches_everything_in_sight(tmp_path):
    """A number of the summary leads to the violations; what has the focus is never below the form that stays on top."""
    (tmp_path / "report.html").write_text(html.render(large(100)))
    covered = """
        const form = document.querySelector("form").getBoundingClientRect(), focus = document.activeElement;
        return form.top === 0 && !focus.closest("form") && focus.getBoundingClientRect().top < form.bottom;
    """
    with chromium.window(1280, 900, tmp_path / "profile") as page:
        page.open(tmp_path / "report.html")
        page.run("document.querySelector('button[data-n=team-7]').click()")
        assert page.run("return document.activeElement.id") == "violations"
        page.press_tab(1)
        assert page.run("return document.activeElement.id") == "q"
        page.run("document.querySelector('#list summary').focus()")
        for _ in range(5):
            page.press_tab(1)
            page.run("document.activeElement.scrollIntoView({block: 'start'})")
            assert page.run("return document.activeElement.textContent") == "replica-limits"
            assert not page.run(covered)


@browser
@pytest.mark.long
def test_a_printed_report_shows_everything(tmp_path):
    """Groups that are closed on the screen open."""
    closed = "return document.querySelectorAll('details:not([open])').length"
    problems = REPORT.problems * 10
    page_text = html.render(replace(large(1_176), problems=problems))
    (tmp_path / "report.html").write_text(page_text)
    with chromium.window(1280, 900, tmp_path / "profile") as page:
        page.open(tmp_path / "report.html")
        assert page.run(closed) == 2
        page.run("dispatchEvent(new Event('beforeprint'))")  # as a browser does
        assert page.run(closed) == 0


def test_the_summary_is_above_what_was_not_judged():
    """Many unreadable files do not hide it."""
    page = html.render(REPORT)
    assert page.index("<h2>Summary</h2>") < page.index("<h2>Not judged</h2>")
