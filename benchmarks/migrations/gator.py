"""Compare the conversions of Gatekeeper's constraints with Gatekeeper's own engine.

    python -m benchmarks.migrations.gator CHECKOUT [ROUNDS [KIND]]

converts random constraints of each published version of each template of a checkout of
gatekeeper-library, and judges random objects by both. Prints the figures of each template, and each
difference. Exits with 1 if there is one. Builds Gatekeeper once (5 minutes of CPU time).
"""

import json
import sys
from collections import Counter
from pathlib import Path

from tests.gatewright.tools.migrate.constraint_cases import cases_of, compare

MOST = 10  # differences that are printed


def main() -> int:
    """Print the figures and the differences."""
    checkout, *rest = sys.argv[1:]
    rounds, only = int(rest[0]) if rest else 20, rest[1] if len(rest) > 1 else ""
    found: dict[str, Counter[str]] = {}
    differences, reasons = list[str](), Counter[str]()
    cases = cases_of(Path(checkout), rounds, only)
    for case, (verdicts, wanted) in compare(cases):
        counts = found.setdefault(case.title, Counter())
        if isinstance(verdicts, str):
            counts["not converted"] += 1
            reasons[f"{case.title.partition(' ')[0]}: {verdicts}"] += 1
            continue
        if isinstance(wanted, str):
            counts["invalid"] += 1
            continue
        counts["converted"] += 1
        for (object, operation), ours, theirs in zip(case.objects, verdicts, wanted, strict=True):
            counts["denied" if ours else "allowed"] += 1
            if ours != bool(theirs):
                counts["differ"] += 1
                differences.append(
                    f"{case.title}: {operation}: Gatekeeper {theirs or 'allows'}\n"
                    f"  {json.dumps(case.constraint['spec'])}\n  {json.dumps(object)}"
                )
    columns = ("converted", "not converted", "invalid", "allowed", "denied", "differ")
    print(f"{'template':58}", *(f"{each:>13}" for each in columns))
    total = sum(found.values(), Counter())
    for title, counts in [*sorted(found.items()), ("total", total)]:
        print(f"{title:58}", *(f"{counts[each]:>13}" for each in columns))
    print(*(f"{count:6} {reason}" for reason, count in reasons.most_common(40)), sep="\n")
    print(*differences[:MOST], sep="\n")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
