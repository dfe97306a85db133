"""Keeps what registries said, and asks for each image only once at a time."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from weakref import WeakValueDictionary

from prometheus_client import CollectorRegistry, Counter, Histogram

from webhook.engine.images import ImageReference, parse_image
from webhook.policies._attached import DIGESTS, SIGNATURES, Attached
from webhook.registries.client import RegistryError
from webhook.registries.reader import RegistryReader

MAX_ENTRIES = 2_000  # of each sort; an entry has a few kilobytes
MAX_BYTES = 32 * 1024 * 1024  # of all signatures in memory
AT_ONCE = 8  # images that one host, or one review, reads at the same time
MAX_READS = 100  # of a host that are under way or wait
TAG_SECONDS = 60.0  # a tag may move
REFUSAL_SECONDS = 30.0  # failures, and answers on which a denial rests
READ_SECONDS = 20.0  # for one image; a review waits for less
MAX_HOSTS = 20  # with metrics of their own: with a wildcard, users name any number of hosts
ROUNDS = 5  # a child's images are known only when its parent has been judged

Answer = str | Attached


class RegistryMetrics:
    """What registries are asked, and how long they take."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register the metrics."""
        self.lookups = Counter(
            "gatewright_registry_lookups_total",
            "Look-ups of images, by answer: from memory, read, or failed",
            ["answer"],
            registry=registry,
        )
        self.seconds = Histogram(
            "gatewright_registry_read_seconds",
            "Time that a registry took for all requests about one image",
            ["host"],
            registry=registry,
        )
        self.failures = Counter(
            "gatewright_registry_failures_total",
            "Images about which a registry gave no usable answer",
            ["host"],
            registry=registry,
        )
        self._hosts = set[str]()

    def host(self, name: str) -> str:
        """Return the label of a host: its name, or `other` after the first MAX_HOSTS hosts."""
        if name not in self._hosts and len(self._hosts) >= MAX_HOSTS:
            return "other"
        self._hosts.add(name)
        return name


class Remembered:
    """Answers about images, by reference. A text in place of an answer says why there is none."""

    def __init__(
        self,
        ask: Callable[[ImageReference], Awaitable[Answer]],
        seconds: float,
        metrics: RegistryMetrics,
    ) -> None:
        """Take what asks, for how long an answer counts, and the metrics."""
        self._ask = ask
        self._seconds = seconds
        self._metrics = metrics
        self._known: dict[str, tuple[Answer, float, float]] = {}  # the oldest first
        self._bytes = 0
        self._room = WeakValueDictionary[str, asyncio.Semaphore]()
        self._reading: dict[str, asyncio.Task[None]] = {}

    def get(self, reference: str) -> Answer | None:
        """Return what is known; None where it must be read."""
        answer, _, until = self._known.get(reference, (None, 0.0, 0.0))
        if answer is None or time.monotonic() >= until:
            return None
        self._metrics.lookups.labels("memory").inc()
        return answer

    def is_old(self, reference: str) -> bool:
        """Return whether an answer is too old for a denial to rest on it."""
        _, since, _ = self._known.get(reference, (None, 0.0, 0.0))
        return time.monotonic() - since > REFUSAL_SECONDS

    async def read(self, reference: str) -> None:
        """Ask the registry, unless that is under way; what it says is known then.

        Of a host with MAX_READS under way, nothing more is asked.
        """
        task = self._reading.get(reference)
        if task is None:
            host = parse_image(reference).registry
            if sum(each.startswith(f"{host}/") for each in self._reading) >= MAX_READS:
                return
            task = asyncio.create_task(self._read(reference), name=f"read {reference}")
            self._reading[reference] = task
            task.add_done_callback(lambda _: self._reading.pop(reference, None))
        await asyncio.shield(task)

    async def _read(self, reference: str) -> None:
        image = parse_image(reference)
        host = self._metrics.host(image.registry)
        room = self._room.setdefault(image.registry, asyncio.Semaphore(AT_ONCE))
        try:
            with self._metrics.seconds.labels(host).time():
                async with asyncio.timeout(READ_SECONDS), room:
                    answer = await self._ask(image)
            seconds = self._seconds
            self._metrics.lookups.labels("read").inc()
        except (RegistryError, TimeoutError) as error:
            slow = f"registry {image.registry} has not answered within {READ_SECONDS:g} s"
            answer, seconds = str(error) or slow, REFUSAL_SECONDS
            self._metrics.lookups.labels("failed").inc()
            self._metrics.failures.labels(host).inc()
            known, *_ = self._known.get(reference, (None,))
            if isinstance(known, Attached):  # what was read of a digest stays true
                answer, seconds = known, self._seconds
        now = time.monotonic()
        self._forget(reference)
        self._known[reference] = answer, now, now + seconds
        self._bytes += _size(answer)
        while len(self._known) > MAX_ENTRIES or self._bytes > MAX_BYTES:
            self._forget(next(iter(self._known)))

    def _forget(self, reference: str) -> None:
        if reference in self._known:
            self._bytes -= _size(self._known.pop(reference)[0])


def _size(answer: Answer) -> int:
    documents = answer.documents if isinstance(answer, Attached) else ()
    return sum(len(each.content) for each in documents)


class _Asked(Mapping[str, Answer]):
    """What one review asks of images: answers that are known, and references that must be read."""

    def __init__(self, remembered: Remembered) -> None:
        self.remembered = remembered
        self.missing: set[str] = set()
        self.used: set[str] = set()
        self._late: dict[str, str] = {}

    def __getitem__(self, reference: str) -> Answer:
        answer = self._late.get(reference) or self.remembered.get(reference)
        if answer is None:
            self.missing.add(reference)
            raise KeyError(reference)
        self.used.add(reference)
        return answer

    def __iter__(self) -> Iterator[str]:
        return iter(self.used)

    def __len__(self) -> int:
        return len(self.used)

    async def read(self, references: set[str], seconds: float) -> None:
        """Read what is missing, within a time; then each has an answer, or why it has none."""
        waiting = sorted(references)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while waiting:
                    await asyncio.gather(*map(self.remembered.read, waiting[:AT_ONCE]))
                    del waiting[:AT_ONCE]
        for each in references:
            if self.remembered.get(each) is None:
                host = parse_image(each).registry
                self._late[each] = f"registry {host} has not answered in time"
        self.missing.clear()


class ImageLookUps:
    """The look-ups of image policies, for all reviews of a process."""

    def __init__(self, reader: RegistryReader, metrics: RegistryMetrics) -> None:
        """Take what reads registries, and the metrics."""
        self._sorts = {
            DIGESTS: Remembered(reader.digest, TAG_SECONDS, metrics),
            SIGNATURES: Remembered(reader.attached, float("inf"), metrics),
        }

    def of_review(self, needs: frozenset[str]) -> "ReviewImages | None":
        """Return what a review asks of images; None where it asks nothing."""
        asked = {name: _Asked(self._sorts[name]) for name in needs & self._sorts.keys()}
        return ReviewImages(asked) if asked else None


class ReviewImages:
    """What one review asks: it is judged again when what it lacked has been read."""

    def __init__(self, asked: Mapping[str, _Asked]) -> None:
        """Take what is asked, by the name of the look-up."""
        self.looked_up = asked
        self._rounds = ROUNDS

    async def has_more(self, *, is_denied: bool, seconds: float = READ_SECONDS) -> bool:
        """Read what was missing, or too old for a denial; return whether to judge again."""
        self._rounds -= 1
        reads = list[tuple[_Asked, set[str]]]()
        for asked in self.looked_up.values():
            old = {each for each in asked.used if is_denied and asked.remembered.is_old(each)}
            if references := asked.missing | old:
                reads.append((asked, references))
        if not reads or self._rounds <= 0:
            return False
        await asyncio.gather(*(asked.read(references, seconds) for asked, references in reads))
        return True
