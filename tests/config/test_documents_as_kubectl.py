"""Files are read as kubectl's own decoder reads them, or refused; never otherwise."""

import base64
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from config.documents import decode_text, parse_documents, readable_documents
from config.yaml_reader import ReadValue, UnusableError, read_values
from tests.config.random_documents import documents, files
from tests.controlplane.fixtures import available
from tests.controlplane.gobuild import build

ROOT = Path(__file__).parents[2]
MODULE = ROOT / "tests" / "controlplane" / "decoder"
ROUNDS = int(os.environ.get("ROUNDS", "600"))  # 10000: a thorough run
SEED = int(os.environ.get("SEED", "1"))
SEPARATOR = "---\n"
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
    """Return how the values or objects of a file differ from kubectl's; "" if they are the same.

    What is refused, kubectl may read; behind its first error, it reads nothing.
    """
    try:
        text = decode_text(data)
    except UnicodeDecodeError:
        return ""
    read = [each.value if isinstance(each, ReadValue) else each for each in read_values(text)]
    parsed, unusable = readable_documents(parse_documents(data, "file.yaml"))
    documents = [canonical(each.value) for each in parsed]
    refused = [isinstance(each, UnusableError) for each in read]
    values = read[: refused.index(True)] if any(refused) else read
    found = kubectl(data)
    count = min(len(found["values"]), len(values)) if unusable else len(found["values"])
    if canonical(values[:count]) != canonical(found["values"][:count]):
        return f"kubectl reads {found['values']}, not {values}"
    if not found.get("error") and len(values) > count:
        return f"kubectl ignores {values[count:]}"
    if unusable:
        return ""
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
@pytest.mark.parametrize(
    ("items", "aliases"),
    [(20, 60), (50, 99), (50, 200), (500, 90), (3000, 98), (3000, 120), (5000, 70), (5000, 95)],
)
@pytest.mark.parametrize("item", ["1", "{a: 1}", "{a: 1, b: [2, {c: 3}]}"])
def test_values_behind_aliases_are_too_many_where_kubectl_finds_them_too_many(
    kubectl: Decoder, items: int, aliases: int, item: str
) -> None:
    """A small text with the values of a large one is refused."""
    text = f"x: &c [{', '.join([item] * items)}]\ny: [{', '.join(['*c'] * aliases)}]\n"
    (read,) = read_values(text)
    is_refused = "excessive aliasing" in str(kubectl(text.encode()).get("error"))
    assert isinstance(read, UnusableError) == is_refused


@pytest.mark.controlplane
def test_documents_beside_unusable_ones_are_read_as_kubectl_reads_them_without_those(
    kubectl: Decoder,
) -> None:
    """Kubectl ends at the first error; here the others are read, and as kubectl reads them."""
    number = 0
    for texts in documents(SEED, ROUNDS):
        usable = [
            text for text in texts if all(isinstance(each, ReadValue) for each in read_values(text))
        ]
        files = [SEPARATOR.join(each) for each in (texts, usable)]
        found = [
            [canonical(each.value) for each in read_values(file) if isinstance(each, ReadValue)]
            for file in files
        ]
        assert found[0] == found[1], texts
        assert difference(files[1].encode(), kubectl) == "", texts
        number += len(texts) > len(usable) > 0
    assert number > ROUNDS // 4


@pytest.mark.controlplane
def test_the_files_of_this_repository_are_read_as_kubectl_reads_them(kubectl: Decoder) -> None:
    """Those that kubectl takes are not refused, except for keys that occur twice."""
    for path in collected():
        data = path.read_bytes()
        assert difference(data, kubectl) == "", path
