"""Judge the samples of kyverno/policies and gatekeeper-library by their converted policies.

    python -m benchmarks.migrations kyverno CHECKOUT
    python -m benchmarks.migrations gatekeeper CHECKOUT

prints, for each folder, how many rules are converted and how many samples get the verdict of the
original, and lists the others. Exits with 1 if there are others.
"""

import sys
from collections import Counter, defaultdict
from pathlib import Path

from benchmarks.migrations.gatekeeper import gatekeeper
from benchmarks.migrations.judging import judged
from benchmarks.migrations.kyverno import kyverno


def main() -> int:
    """Print the figures of a checkout."""
    library, checkout = sys.argv[1], Path(sys.argv[2])
    folders = {"kyverno": kyverno, "gatekeeper": gatekeeper}[library](checkout)
    figures: dict[str, Counter[str]] = defaultdict(Counter)
    wrong = []
    for folder, counted, policies, samples in folders:
        figures[folder] += counted
        for sample in samples:
            if policies is None:
                figures[folder]["not converted"] += 1
                continue
            verdict = judged(policies, sample)
            is_right = verdict == ("denied" if sample.is_denied else "allowed")
            figures[folder]["right" if is_right else "wrong"] += 1
            if not is_right:
                wrong.append(f"{sample.where}: {verdict}, the original "
                             f"{'denies' if sample.is_denied else 'allows'}")  # fmt: skip
    columns = ("rules", "converted", "right", "wrong", "not converted")
    print(f"{'folder':34}", *(f"{each:>14}" for each in columns))
    total = sum(figures.values(), Counter())
    for folder, counted in [*sorted(figures.items()), ("total", total)]:
        print(f"{folder:34}", *(f"{counted[each]:>14}" for each in columns))
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
