"""Tune the garbage collector to run rarely: objects of the start stay, and reviews and reconciles leave no cycles."""

import gc

THRESHOLDS = (50_000, 20, 100)  # a large review makes no full collection of tens of milliseconds


def collect_rarely() -> None:
    """Look for garbage less often; called before the large imports, which leave none."""
    gc.set_threshold(*THRESHOLDS)


def settle() -> None:
    """Take what the start made out of the collector's sight.

    It is not collected first: that would take a tenth of the time of a start, to find a dozen objects.
    """
    collect_rarely()
    gc.freeze()
