"""A clock that only a test moves."""


class Clock:
    """The time is what `now` says."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """The time."""
        return self.now
