"""A clock that only a test moves."""


class Clock:
    """A clock whose time is `now`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now
