"""Tune the garbage collector to run rarely: startup objects stay, and reviews and reconciles create no cycles."""

import gc

THRESHOLDS = (
    50_000,
    20,
    100,
)  # so that a large review does not cause a full collection, which takes tens of milliseconds


def collect_rarely() -> None:
    """Collect garbage less often; call this before the large imports, which leave no garbage."""
    gc.set_threshold(*THRESHOLDS)


def settle() -> None:
    """Exclude the objects of startup from garbage collection.

    Do not collect first: that takes a tenth of the startup time and frees a dozen objects.
    """
    collect_rarely()
    gc.freeze()
