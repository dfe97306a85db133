"""Files are read as kubectl's own decoder reads them, or refused; never otherwise."""

import base64
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from config.documents import DocumentError, decode_text, parse_documents
from config.yaml_reader import UnusableError, read_values
from tests.config.random_documents import files
from tests.controlplane.fixtures import available
from tests.controlplane.gobuild import build

ROOT = Path(__file__).parents[2]
MODULE = ROOT / "tests" / "controlplane" / "decoder"
ROUNDS = int(os.environ.get("ROUNDS", "600"))  # 10000: a thorough run
SEED = int(os.environ.get("SEED", "1"))
Decoder = Callable[[bytes], dict[str, Any]]


@pytest.fixture(scope="module")
def kubectl(pytestconfig: pytest.Config) -> Iterator[Decoder]:
    """Reads a file as kubectl does, in a separate process: its values, its objects, and its error."""
    program = available(pytestconfig, lambda: build(MODULE, ".", "decoder", takes="a minute"))
    with subprocess.Popen(
        [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def read(data: bytes) -> dict[str, Any]:
            process.stdin.write(json.dumps(base64.b64encode(data).decode()) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield read


def difference(data: bytes, kubectl: Decoder) -> str:
    """Return how the values or objects of a file differ from kubectl's; "" if they are the same, or refused."""
    try:
        text = decode_text(data)
        values = [value for value, *_ in read_values(text) if value is not None]
        documents = [canonical(each.value) for each in parse_documents(data, "file.yaml")]
    except (DocumentError, UnusableError, UnicodeDecodeError, RecursionError):
        return ""
    found = kubectl(data)
    count = len(found["values"])
    if canonical(values[:count]) != canonical(found["values"]):
        return f"kubectl reads {found['values']}, not {values}"
    if not found.get("error") and len(values) != count:
        return f"kubectl ignores {values[count:]}"
    sent = [each for each in found["objects"] if each.get("kind")]
    missing = [each for each in sent if canonical(each) not in documents]
    return f"kubectl also sends {missing}, beside {documents}" if missing else ""


def canonical(value: Any) -> str:
    """Return a value as text, in which 3 is 3.0, and 1 is not true."""
    decoded = json.loads(json.dumps(value), parse_float=_number, parse_int=_number)
    return json.dumps(decoded, sort_keys=True)


def _number(text: str) -> int | float:
    number = float(text)
    is_integer = number.is_integer() and abs(number) < 2**63
    return int(text if text.lstrip("-").isdigit() else number) if is_integer else number


def collected() -> Iterator[Path]:
    """Yield the YAML and JSON files of the repository, templates of charts included."""
    listed = subprocess.run(
        ["git", "ls-files", "*.yaml", "*.yml", "*.json"], cwd=ROOT, capture_output=True, check=True
    )
    yield from (ROOT / name for name in listed.stdout.decode().splitlines())


@pytest.mark.controlplane
def test_random_files_are_read_as_kubectl_reads_them(kubectl: Decoder) -> None:
    """The same values and objects, or an error: never another value, never an object that is left out."""
    differences = {
        data: found for data in files(SEED, ROUNDS) if (found := difference(data, kubectl))
    }
    assert differences == {}


@pytest.mark.controlplane
def test_the_files_of_this_repository_are_read_as_kubectl_reads_them(kubectl: Decoder) -> None:
    """Those that kubectl takes are not refused, except for keys that occur twice."""
    for path in collected():
        data = path.read_bytes()
        assert difference(data, kubectl) == "", path
