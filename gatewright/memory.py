"""When Python looks for garbage: seldom, since what a start makes stays, and a review or a reconcile leaves none."""

import gc

THRESHOLDS = (50_000, 20, 100)  # a large review makes no full collection of tens of milliseconds


def collect_rarely() -> None:
    """Look for garbage less often; called before the large imports, it saves a tenth of them."""
    gc.set_threshold(*THRESHOLDS)


def settle() -> None:
    """Take what the start made out of the collector's sight.

    It is not collected first: that would cost as much as a tenth of the imports, to find one object in a hundred.
    """
    collect_rarely()
    gc.freeze()
