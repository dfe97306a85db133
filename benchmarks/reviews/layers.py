"""`python -m benchmarks.reviews.layers [BODY]`: the cost of receiving a review, by layer.

The body is by default the ConfigMap of 1 MB that no policy judges.
"""

import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.measured import progress
from benchmarks.reviews.bodies import bodies
from benchmarks.reviews.floor import LAYERS
from benchmarks.reviews.load import Load
from benchmarks.reviews.policy_sets import write
from benchmarks.reviews.servers import TYPED, Bench
from gatewright.console.terminal import say, table

ROUNDS, REVIEWS, CONNECTIONS = 7, 300, 8


def main(name: str = "config-map") -> None:
    """Measure all layers in interleaved rounds; print them with Gatewright and typed Go."""
    body = bodies()[name]
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        bench = Bench(Path(directory), body)
        review = Path(directory) / "review.json"
        review.write_bytes(body.review)
        servers = {text: stack.enter_context(bench.floor(layer)) for layer, text in LAYERS.items()}
        servers["Gatewright"] = stack.enter_context(
            bench.gatewright(write(Path(directory) / "policies"))
        )
        servers["typed Go"] = stack.enter_context(bench.go(TYPED))
        rounds: dict[str, list[float]] = {text: [] for text in servers}
        for number in range(ROUNDS):
            for text, server in servers.items():
                progress(f"round {number + 1} of {ROUNDS}")
                load = Load([server], review, body.path, connections=CONNECTIONS, requests=REVIEWS)
                rounds[text].append(load.start().result().cpu)
    progress("")
    rows = []
    for text, found in rounds.items():
        ratio = statistics.median(
            one / typed for one, typed in zip(found, rounds["typed Go"], strict=True)
        )
        rows.append((text, f"{statistics.median(found):,.0f}", f"{ratio:.2f}x"))
    table(rows, ("LAYER", "CPU µs", "OF TYPED GO"))
    say(f"{body.about}: {len(body.review):,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
