"""The constraints and samples of gatekeeper-library."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.migrations.samples import DISPUTED, Sample, read_file
from gatewright.tools.migrate import migrate


def gatekeeper(checkout: Path) -> Iterator[tuple[str, Counter[str], Any, list[Sample]]]:
    """Yield folder, counts, converted policies (None: not converted) and samples."""
    for suite in sorted(checkout.glob("library/*/*/suite.yaml")):
        area = suite.parent.parent.name
        for test in read_file(suite)[0].value["tests"]:
            at = suite.parent
            documents = [*read_file(at / test["template"]), *read_file(at / test["constraint"])]
            result = migrate(documents)
            converted = result.converted if not result.unconverted else None
            counted = Counter(rules=1, converted=1 if converted else 0)
            samples = []
            for case in test["cases"]:
                beside = [e for name in case.get("inventory") or () for e in read_file(at / name)]
                wanted = [each.get("violations", "yes") for each in case["assertions"]]
                is_denied = any(each not in ("no", False, 0) for each in wanted)
                for each in read_file(at / case["object"]):
                    where = f"{at / case['object']} ({test['name']})"
                    if not where.endswith(DISPUTED):
                        samples.append(Sample(where, each, is_denied, beside))
            yield area, counted, converted, samples
