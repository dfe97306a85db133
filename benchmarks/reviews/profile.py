"""`python -m benchmarks.reviews.profile [BODY…]`: profile a review, without a server.

Prints, for each body, the microseconds of decoding, judging and answering (the fastest of several
rounds), how many Python functions a review calls, and those that cost most. In a server, a call
costs about twice as much: compare numbers of calls.
"""

import cProfile
import io
import pstats
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.reviews.bodies import Body, bodies
from benchmarks.reviews.policy_sets import write
from config.documents import read_documents
from webhook import review
from webhook.engine import NAMESPACE_LABELS, Engine
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import load

ROUNDS, REVIEWS, SHOWN = 9, 200, 12
LARGE = 100_000  # bytes from which a review is repeated ten times only
DEFAULT = ("allow", "deny", "mutate", "update", "pod")


def main(names: Iterable[str]) -> None:
    """Print the profile of each body."""
    with tempfile.TemporaryDirectory() as directory:
        files = sorted(write(Path(directory) / "policies").iterdir())
        engine = Engine(
            load((document for file in files for document in read_documents(file)), catalogue())
        )
    for name in names:
        _profile(engine, bodies()[name])


def _profile(engine: Engine, body: Body) -> None:
    judge = engine.mutate if body.path == "/mutate" else engine.validate
    looked_up = {NAMESPACE_LABELS: {"environment": "production"} if body.name == "labels" else {}}
    repeats = 10 if len(body.review) > LARGE else REVIEWS
    request = review.read(body.review).with_looked_up(looked_up)
    verdict = judge(request)

    def whole() -> None:
        asked = review.read(body.review).with_looked_up(looked_up)
        review.answer(asked, judge(asked))

    def repeated() -> None:
        for _ in range(repeats):
            whole()

    read = _fastest(lambda: review.read(body.review), repeats)
    answer = _fastest(lambda: review.answer(request, verdict), repeats)
    total = _fastest(whole, repeats)
    profile = cProfile.Profile()
    profile.runcall(repeated)
    stream = io.StringIO()
    stats = pstats.Stats(profile, stream=stream).sort_stats("tottime")
    stats.print_stats(SHOWN)
    print(
        (
            f"{body.name}: {total:.0f} µs: read {read:.0f}, judge {total - read - answer:.0f}, "
            "answer "
            f"{answer:.0f};"
        ),
        end="",
    )
    print(f" {stats.total_calls / repeats:.0f} calls")  # type: ignore[attr-defined]
    print("\n".join(stream.getvalue().splitlines()[6:]).rstrip(), end="\n\n")


def _fastest(work: Callable[[], object], repeats: int) -> float:
    """Return microseconds of one call in the fastest round."""
    rounds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(repeats):
            work()
        rounds.append((time.perf_counter() - began) / repeats * 1e6)
    return min(rounds)


if __name__ == "__main__":
    main(sys.argv[1:] or DEFAULT)
