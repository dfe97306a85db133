"""The playground in a browser."""

import subprocess
from contextlib import contextmanager

import pytest

from tests import waiting
from tests.gatewright.outputs import chromium
from tests.gatewright.outputs.test_html import UNREADABLE, browser
from tests.gatewright.started import COMMAND
from tests.gatewright.tools.playground.drafts import REPLICAS, SAID, SHOP

pytestmark = [browser, pytest.mark.long]
TYPE = """
    const field = document.getElementById({id!r});
    field.value = {text!r};
    field.dispatchEvent(new Event("input"));
"""


@contextmanager
def playground(tmp_path, width=1280, height=900):
    """Serve the playground and open it; yield the window and the address."""
    command = [str(COMMAND), "playground", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().split()[0]
            with chromium.window(width, height, tmp_path / "profile") as page:
                page.visit(url)
                until(page, "verdict", "denied: CREATE Deployment production/shop")
                yield page, url
        finally:
            server.terminate()


def text(page, id):
    """Return the text of an element."""
    return page.run(f"return document.getElementById({id!r}).textContent")


def until(page, id, wanted):
    """Wait until an element has a text."""
    waiting.until(lambda: text(page, id) == wanted, problem=lambda: text(page, id))


def typed(page, id, text):
    """Type a text into a field."""
    page.run(TYPE.format(id=id, text=text))


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)], ids=["desktop", "phone"])
def test_it_judges_while_one_types(tmp_path, width, height):
    """Incomplete YAML keeps the last verdict; nothing is wider than the window, and the console has no error."""
    with playground(tmp_path, width, height) as (page, _):
        assert page.run("return [innerWidth, document.documentElement.scrollWidth]") == [
            width,
            width,
        ]
        typed(page, "namespace", "default")
        typed(page, "policies", REPLICAS)
        typed(page, "object", SHOP)
        until(page, "verdict", "denied: CREATE Deployment default/shop")
        assert text(page, "said") == SAID
        typed(page, "object", "a: [")
        until(
            page,
            "problem",
            "object.yaml:1: not YAML: expected the node content, but found '<stream end>'\n"
            "Below is the verdict on the last text that could be judged.",
        )
        assert text(page, "said") == SAID
        typed(page, "object", SHOP.replace("11", "1"))
        until(page, "verdict", "allowed: CREATE Deployment default/shop")
        assert page.run("return document.getElementById('problem').hidden")
        assert page.log() == []


def test_a_link_has_everything_behind_its_hash(tmp_path):
    """The server never gets that part; a damaged link shows the first example."""
    with playground(tmp_path) as (page, url):
        typed(page, "object", SHOP)
        typed(page, "username", "jane")
        page.run("document.getElementById('share').click()")
        until(page, "note", "A link with everything behind its # is ready to be copied.")
        link = page.run("return location.href")
        assert link.startswith(f"{url}#")
        page.visit("about:blank")
        page.visit(link)
        until(page, "verdict", "denied: CREATE Deployment production/shop")
        assert page.run("return [object, username].map(each => each.value)") == [SHOP, "jane"]
        page.visit("about:blank")
        page.visit(f"{url}#damaged")
        until(page, "note", "The link is damaged: this is the first example.")


def test_examples_and_cases(tmp_path):
    """An example fills the fields; the test case is on the page."""
    with playground(tmp_path) as (page, _):
        page.run("""
            const example = document.getElementById("example");
            example.value = [...example.options].find(each => each.text === "replica-limits").value;
            example.dispatchEvent(new Event("change"));
        """)
        until(page, "verdict", "denied: CREATE Deployment default/case")
        page.run("document.getElementById('case').click()")
        until(page, "note", "The test case is ready to be copied.")
        assert text(page, "cases").startswith(
            "# The policy set is in the same directory, as policies.yaml.\n"
        )


def test_everybody_can_use_it(tmp_path):
    """Controls have names and are reached by keyboard; text is readable in both colour schemes."""
    unnamed = """return [...document.querySelectorAll("input, select, button, textarea, summary, pre")]
        .filter(each => !(each.labels?.length || each.ariaLabel || each.innerText.trim())
            || each.checkVisibility() && each.tabIndex < 0)
        .map(each => each.outerHTML)"""
    with playground(tmp_path) as (page, url):
        assert page.run(unnamed) == []
        assert page.run("return verdict.getAttribute('aria-live')") == "polite"
        for scheme, ground in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 23, 30)")):
            page.prefer(scheme)
            page.visit(url)
            until(page, "verdict", "denied: CREATE Deployment production/shop")
            assert page.run("return getComputedStyle(document.body).backgroundColor") == ground
            assert page.run(UNREADABLE) == []
