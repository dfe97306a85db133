"""What a stranger's repository has reaches no secret, no server and no file outside of it."""

import os
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from config.directories import walk_directory
from gatewright.checks.programs import MAX_CPU, MAX_MEMORY, MAX_OUTPUT, Programs
from gatewright.cli import main
from gatewright.outputs.choice import FORMATS
from tests.gatewright.checks.museum import CHARTS, KUSTOMIZATIONS, POD, REFUSED, SECRET
from tests.gatewright.started import COMMAND

WRITTEN = FORMATS[1:]  # the table is printed
NAME = "{0.name}".format


@pytest.fixture
def loopback():
    """Return the port of a server, and the list of the requests that it gets."""
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
            self.send_error(404)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port, requests
        server.shutdown()
        thread.join()


@pytest.fixture
def judge(tmp_path, monkeypatch, capfd, loopback):
    """Write an exhibit, check it, and hold that nothing came out or was reached."""
    monkeypatch.setenv("MYSECRET", SECRET)
    outside, repository = tmp_path / "outside", tmp_path / "repository"
    outside.mkdir()
    (outside / "secret").write_text(SECRET)
    (outside / "kustomization.yaml").write_text("resources: [victim.yaml]\n")
    victim = outside / "victim.yaml"
    victim.write_text(POD.replace("IMAGE", SECRET))
    (repository / ".git").mkdir(parents=True)
    (repository / ".git/config").write_text(f"[http]\nextraheader = {SECRET}\n")
    port, requests = loopback

    def run(exhibit):
        exhibit.write(repository)
        for path, _, names, _ in walk_directory(repository, lambda _: None):
            for each in [path / name for name in names if name.endswith(".yaml")]:
                if not each.is_symlink():
                    each.write_text(each.read_text().replace("{port}", str(port)))
        monkeypatch.chdir(repository)
        before = {each: each.read_bytes() for each in outside.iterdir()}
        reports = [tmp_path / each for each in WRITTEN]
        outputs = [f"--output={each.name}={each}" for each in reports]
        with pytest.raises(SystemExit) as ended:
            main(["check", "--policies", "baseline", *outputs, *exhibit.arguments])
        out, err = capfd.readouterr()
        texts = [out, err, *(each.read_text() for each in reports if each.exists())]
        assert (ended.value.code, "Traceback" in err) == (exhibit.code, False), err
        assert exhibit.says in out + err
        assert not [each for each in texts if SECRET in each]
        assert not requests
        assert {each: each.read_bytes() for each in outside.iterdir()} == before

    yield run
    # pytest removes directories by a recursion, which fails for deep ones.
    subprocess.run(["/bin/rm", "-r", repository], check=True)


@pytest.mark.long
@pytest.mark.parametrize("exhibit", REFUSED, ids=NAME)
def test_a_hostile_repository_is_refused(judge, tmp_path, monkeypatch, exhibit):
    """It is refused before a program starts: the programs here would be seen."""
    for name in ("helm", "kustomize"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\ntouch {tmp_path}/outside/{name}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    judge(exhibit)


@pytest.mark.long
@pytest.mark.parametrize("exhibit", CHARTS, ids=NAME)
def test_a_hostile_chart_is_bounded(judge, monkeypatch, helm, exhibit):
    """Helm reads nothing outside of the chart, and ends."""
    monkeypatch.setenv("PATH", str(helm.parent))
    judge(exhibit)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
@pytest.mark.parametrize("exhibit", KUSTOMIZATIONS, ids=NAME)
def test_a_hostile_kustomization_is_bounded(judge, exhibit):
    """Kustomize reads nothing outside of the repository, and ends."""
    judge(exhibit)


def test_modules_of_a_repository_are_not_loaded(tmp_path):
    """Neither packages with the names of Gatewright's, nor plugins, nor policies are loaded."""
    evil = f"open({str(tmp_path / 'loaded')!r}, 'w')\n"
    for name in ("certs.py", "config.py", "webhook/__init__.py", "policies/evil.py", "conftest.py"):
        file = tmp_path / "repository" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(evil)
    plugin = tmp_path / "repository/evil-1.0.dist-info/entry_points.txt"
    plugin.parent.mkdir()
    plugin.write_text(
        "[gatewright.policies]\nevil = conftest\n[gatewright.kinds]\nevil = conftest\n"
    )
    plugin.with_name("METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    (tmp_path / "repository/a.yaml").write_text(POD)
    command = [COMMAND, "check", "--policies", "baseline", "."]
    ended = subprocess.run(command, cwd=tmp_path / "repository", check=False, capture_output=True)
    assert (ended.returncode, (tmp_path / "loaded").exists()) == (1, False)


@pytest.mark.parametrize(
    ("text", "code", "out"),
    [
        ("env | sort | cut -d= -f1 | grep -v -e PWD -e SHLVL -e _", 0, None),
        ("ls -A $HOME", 0, b""),
        ("cat /proc/net/dev | grep -v -e lo: -e face -e Inter", 1, b""),
        ("yes | tr -d '\\n' | head -c 70000000", None, None),
    ],
)
def test_a_program_gets_little(monkeypatch, text, code, out):
    """A short list of variables, an empty home, no network, and a bound of its output."""
    monkeypatch.setenv("MYSECRET", SECRET)
    with Programs() as programs:
        done = programs.run(["/bin/sh", "-c", text], 60)
    assert len(done.out) <= MAX_OUTPUT
    if code is not None:
        assert done.code == code
    if out is not None:
        assert done.out == out
    assert SECRET.encode() not in done.out


def test_a_program_has_no_more_memory_than_the_limit():
    """A program that takes more fails."""
    with Programs() as programs:
        taken = programs.run(["/bin/sh", "-c", "ulimit -v; ulimit -t"], 60).out.split()
    assert taken == [b"%d" % (MAX_MEMORY >> 10), b"%d" % MAX_CPU]
    assert os.environ["PATH"]
