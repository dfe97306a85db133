"""The playground's server: answers and rejected requests."""

import asyncio
import gzip
import io
import re
import signal
import socket
import subprocess

import pytest

from config.presets import presets
from gatewright.cli import main
from gatewright.tools.playground.server import MAX_DRAFT, application, is_own
from tests.gatewright.started import COMMAND
from tests.gatewright.tools.playground.drafts import SAID, fields


@pytest.fixture
async def page(aiohttp_client):
    """A client of the playground."""
    return await aiohttp_client(application("127.0.0.1", "some: policies"))


async def test_a_draft_is_judged(page):
    """The answer is JSON, and no browser keeps it."""
    answer = await page.post("/review", json=fields())
    assert (answer.status, answer.headers["Cache-Control"]) == (200, "no-store")
    assert (await answer.json())["said"] == SAID


async def test_the_page_may_do_nothing_but_talk_to_its_server(page):
    """Its script and style are allowed by their hashes, and it contains no address."""
    answer = await page.get("/")
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith(
        "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; "
    )
    assert "unsafe" not in policy
    assert re.findall(r"(?:https?:)?//[a-z]", await answer.text()) == []


async def test_examples_have_the_policy_set_to_begin_with(page):
    """The page has the presets, too."""
    found = await (await page.get("/examples")).json()
    assert found["policies"] == "some: policies"
    assert [*found["presets"]] == [*presets()]
    assert found["examples"][0]["name"] == "production: docs/shop.yaml"


async def test_incomplete_text_is_a_problem_and_no_http_error(page):
    """The answer lists the problem, with status 200."""
    answer = await page.post("/case", json=fields(object="a: ["))
    problem = "object.yaml:1: not YAML: expected the node content, but found '<stream end>'"
    assert (answer.status, await answer.json()) == (200, {"problem": problem})


@pytest.mark.parametrize(
    ("body", "headers", "status", "problem"),
    [
        (b"{}", {"Content-Type": "text/plain"}, 415, "the content type must be application/json"),
        (b"{", {}, 400, "not a draft: unexpected end of data: line 1 column 2 (char 1)"),
        (
            b"\xff",
            {},
            400,
            "not a draft: str is not valid UTF-8: surrogates not allowed: line 1 column 1 (char 0)",
        ),
        (b"[]", {}, 400, "not a draft: []: should be an object"),
        (b" " * (MAX_DRAFT + 1), {}, 413, "a draft has at most 1048576 bytes"),
        (
            gzip.compress(b" " * (MAX_DRAFT + 1)),
            {"Content-Encoding": "gzip"},
            413,
            "a draft has at most 1048576 bytes",
        ),
    ],
    ids=["form", "half", "bytes", "list", "large", "packed"],
)
async def test_rubbish_is_refused_with_a_reason(page, body, headers, status, problem):
    """The page shows the reason."""
    headers = {"Content-Type": "application/json", **headers}
    answer = await page.post("/review", data=io.BytesIO(body), headers=headers)
    assert (answer.status, await answer.json()) == (status, {"problem": problem})


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1:8500", True),
        ("localhost:8500", True),
        ("[::1]:8500", True),
        ("10.0.0.7", True),
        ("desk.example:8500", True),
        ("evil.example:8500", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
    ],
)
def test_only_its_own_names_lead_to_it(host, own):
    """A name of another site that resolves to this server (DNS rebinding) is refused."""
    assert is_own("desk.example", host) is own


async def test_a_foreign_name_is_refused(page):
    """The request is rejected before its body is read."""
    answer = await page.post("/review", json=fields(), headers={"Host": "evil.example"})
    assert answer.status == 421


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:8500", 200),
        ("http://localhost:8500", 200),
        ("https://evil.example", 403),
        ("null", 403),
        ("http://127.0.0.1.evil.example", 403),
    ],
)
async def test_pages_of_other_sites_are_refused(page, origin, status):
    """A browser sends the origin of the page that asks."""
    answer = await page.post("/review", json=fields(), headers={"Origin": origin})
    assert answer.status == status


async def test_a_review_ends_in_time(page, monkeypatch):
    """A review that takes longer than a webhook may gets no verdict."""
    monkeypatch.setattr("gatewright.tools.playground.server.SECONDS", 0.0)
    answer = await page.post("/review", json=fields())
    problem = "judging takes longer than 0 s, the limit of a webhook"
    assert (answer.status, await answer.json()) == (503, {"problem": problem})


def test_a_taken_port_is_one_line(capsys):
    """The exit code is 1."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit) as ended:
            main(["playground", "--listen", f"127.0.0.1:{port}"])
    assert ended.value.code == 1
    assert capsys.readouterr().err == (
        f"Error: cannot listen on 127.0.0.1:{port}: address already in use; choose another address with --listen\n"
    )


def test_unreadable_policies_are_one_line(tmp_path, capsys):
    """The exit code is 3, as for every command."""
    file = tmp_path / "policies.yaml"
    file.write_bytes(b"\xff")
    with pytest.raises(SystemExit) as ended:
        main(["playground", "--policies", str(file)])
    assert ended.value.code == 3
    assert capsys.readouterr().err == f"{file}: not UTF-8 text: invalid start byte at byte 0\n"


@pytest.mark.long
async def test_it_serves_until_it_is_stopped():
    """Its only line is the address, also when a client sends no HTTP."""
    command = (str(COMMAND), "playground", "--policies", "baseline", "--listen", "127.0.0.1:0")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = await asyncio.create_subprocess_exec(*command, **pipes)
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/ until Ctrl-C\n", line)
    assert found is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", int(found[1]))
    writer.write(b"GET / HTTP/1.1\r\nContent-Length: -5\r\n\r\n")
    assert await reader.readline() == b"HTTP/1.0 400 Bad Request\r\n"
    writer.close()
    process.send_signal(signal.SIGINT)
    assert (await process.communicate(), process.returncode) == ((b"", b""), 0)
