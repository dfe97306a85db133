"""What is skipped, by reason: a line each, however many files it is about."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from config.documents import Document
from config.printable import printable
from kube.resource import group_kind

MAX_NAMES = 3  # in a line; a report of a large tree must stay readable


class Skipped:
    """Places by the reason for which they are skipped."""

    def __init__(self) -> None:
        """Start empty."""
        self.places: dict[str, dict[str, None]] = {}
        """Places by reason, in order, as they are shown."""

    def __len__(self) -> int:
        """Return the number of places."""
        return sum(map(len, self.places.values()))

    def add(self, place: Path | str, reason: str) -> None:
        """Skip a file or directory, or a place such as `file:line`."""
        self.places.setdefault(reason, {})[printable(place)] = None

    def keep(self, is_kept: Callable[[str], bool]) -> None:
        """Keep some places."""
        self.places = {
            reason: kept
            for reason, places in self.places.items()
            if (kept := {place: None for place in places if is_kept(place)})
        }

    def lines(self) -> Iterator[str]:
        """Yield a line for each reason, with the first places and the number of the others."""
        for reason, places in self.places.items():
            first = [*places][:MAX_NAMES]
            more = len(places) - len(first)
            yield f"{', '.join(first)}{f' and {more} more' if more else ''}: {reason}"


def kinds_of(documents: Iterable[Document]) -> str:
    """Return the kinds of objects, each with its number: `2 ConfigMap, 1 Role`."""
    counts = Counter(group_kind(each.value)[1] for each in documents)
    return ", ".join(f"{number} {printable(kind)}" for kind, number in sorted(counts.items()))
