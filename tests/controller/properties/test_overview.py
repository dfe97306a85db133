"""The overview of the properties names tests that exist."""

import re
from pathlib import Path

import tests
from tests.controller import properties

ROOT = Path(tests.__path__[0])


def test_every_test_of_the_overview_exists() -> None:
    """There are seventeen properties, each with at least one test that exists at its stated place."""
    overview = properties.__doc__ or ""
    sections = re.split(r"^(\d+) .*\n", overview, flags=re.MULTILINE)[1:]
    named = dict(zip(map(int, sections[::2]), sections[1::2], strict=True))
    assert list(named) == list(range(1, 18))
    for number, said in named.items():
        places = re.findall(r"^    (\S+)::(\w+)$", said, flags=re.MULTILINE)
        assert places, f"property {number} has no test"
        for file, test in places:
            text = (ROOT / file).read_text()
            assert re.search(rf"def {test}\(|^{test} = ", text, flags=re.MULTILINE), (
                f"{file} has no {test}"
            )
