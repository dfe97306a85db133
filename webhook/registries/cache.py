"""Caches the answers of registries, and reads each image only once at a time.

Reads are bounded for each host and over all of them; namespaces share both, so that the images of
one delay no other's.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from weakref import WeakValueDictionary

from prometheus_client import CollectorRegistry, Counter, Histogram

from config.image_references import parse_image
from webhook.engine.image_look_ups import IMAGE_LOOK_UPS, Attached
from webhook.registries.client import RegistryError
from webhook.registries.reader import RegistryReader
from webhook.registries.room import NOBODY, Asker, Claim, Room

MAX_ENTRIES = 4_000  # an image has two, its tag and its digest; each has a few kilobytes
MAX_BYTES = 32 * 1024 * 1024  # of all signatures in memory
AT_ONCE = 8  # images of one host, or for one review, that are read concurrently
# Images of all hosts that are read concurrently: each has at most 4 MiB of answers and 4 MiB of
# signatures in memory.
AT_ONCE_OF_ALL = 16
MAX_READS = 50  # running and waiting reads of one host for one namespace
MAX_READS_OF_ALL = 1_000
TAG_SECONDS = 60.0  # a tag may move
FOR_GOOD = float("inf")
REFUSAL_SECONDS = 30.0  # failures, and answers on which a denial rests
READ_SECONDS = 20.0  # for one image; a review waits for less
# A read that has begun goes on for this long when no review waits for it any more: the next
# attempt of the client finds its answer.
UNAWAITED_SECONDS = 5.0
MAX_HOSTS = 20  # with metrics of their own; with a wildcard, users can name any number of hosts
ROUNDS = 5  # a child's images are known only after its parent was judged

Answer = str | Attached


class RegistryMetrics:
    """Metrics of registry look-ups."""

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


class ImageLookUps:
    """Answers about images, by reference, for all reviews of a process.

    The answer about a tag is its digest; the answer about a digest is what is attached to it. Any
    other text is the reason why there is no result.
    """

    def __init__(self, reader: RegistryReader, metrics: RegistryMetrics) -> None:
        """Take what reads registries, and the metrics."""
        self._reader = reader
        self._metrics = metrics
        self._known: dict[str, tuple[Answer, float, float]] = {}  # the oldest first
        self._bytes = 0
        self._rooms = WeakValueDictionary[str, Room]()
        self._room_of_all = Room(AT_ONCE_OF_ALL)
        self._reading: dict[str, ImageRead] = {}

    def of_review(
        self, needs: frozenset[str], asker: Asker | None = NOBODY
    ) -> "ReviewImages | None":
        """Return what a review asks of images; None where it asks nothing."""
        names = needs & IMAGE_LOOK_UPS
        return ReviewImages(self, names, asker) if names else None

    def get(self, reference: str) -> Answer | None:
        """Return the cached answer; None if it must be read."""
        answer, _, until = self._known.get(reference, (None, 0.0, 0.0))
        if answer is None or time.monotonic() >= until:
            return None
        self._metrics.lookups.labels("memory").inc()
        return answer

    def is_old(self, reference: str) -> bool:
        """Return whether an answer is too old to justify a denial."""
        _, since, _ = self._known.get(reference, (None, 0.0, 0.0))
        return time.monotonic() - since > REFUSAL_SECONDS

    async def read(self, reference: str, asker: Asker | None = NOBODY) -> None:
        """Read an image from its registry into the cache, or wait for the read in progress.

        A host with MAX_READS in progress for a namespace is not contacted again for it. A read is
        cancelled when no review waits for it.
        """
        read = self._reading.get(reference)
        if read is None:
            host = parse_image(reference).registry
            if not self._has_room(host, asker):
                return
            claim = Claim(asker)
            task = asyncio.create_task(self._read(reference, claim), name=f"read {reference}")
            read = self._reading[reference] = ImageRead(host, claim, task)
            task.add_done_callback(lambda _: self._reading.pop(reference, None))
        read.claim.askers.add(asker)
        await read.wait()

    def _has_room(self, host: str, asker: Asker | None) -> bool:
        of_host = [each for each in self._reading.values() if each.host == host]
        own = sum(asker in each.claim.askers for each in of_host)
        most = MAX_READS // 2 if asker is not None and asker.dry_run else MAX_READS
        return (asker is None or own < most) and len(self._reading) < MAX_READS_OF_ALL

    async def _read(self, reference: str, claim: Claim) -> None:
        image = parse_image(reference)
        host = self._metrics.host(image.registry)
        room = self._rooms.setdefault(image.registry, Room(AT_ONCE))
        ask = self._reader.read_signatures if image.digest else self._reader.digest
        answer: Answer
        try:
            async with room.of(claim), self._room_of_all.of(claim), asyncio.timeout(READ_SECONDS):
                claim.has_begun = True
                with self._metrics.seconds.labels(host).time():
                    answer = await ask(image)
            seconds = FOR_GOOD if image.digest else TAG_SECONDS
            self._metrics.lookups.labels("read").inc()
        except (RegistryError, TimeoutError) as error:
            slow = f"registry {image.registry} has not answered within {READ_SECONDS:g} s"
            answer, seconds = str(error) or slow, REFUSAL_SECONDS
            self._metrics.lookups.labels("failed").inc()
            self._metrics.failures.labels(host).inc()
            cached, *_ = self._known.get(reference, (None,))
            if isinstance(cached, Attached):  # what was read of a digest stays true
                answer, seconds = cached, FOR_GOOD
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


class ImageRead:
    """One read in progress, and how many reviews wait for it."""

    def __init__(self, host: str, claim: Claim, task: asyncio.Task[None]) -> None:
        """Take the registry's host, the claim of room, and the running task."""
        self.host = host
        self.claim = claim
        self._task = task
        self._waiting = 0

    async def wait(self) -> None:
        """Wait until it has ended; cancel it soon after the last one stops waiting."""
        self._waiting += 1
        try:
            await asyncio.shield(self._task)
        except asyncio.CancelledError:
            if not self._task.cancelled():
                raise
        finally:
            self._waiting -= 1
            seconds = UNAWAITED_SECONDS if self.claim.has_begun else 0
            asyncio.get_running_loop().call_later(seconds, self._cancel_unawaited)

    def _cancel_unawaited(self) -> None:
        if not self._waiting:
            self._task.cancel()


class ReviewImages(Mapping[str, Answer]):
    """The answers of one review: it is judged again when what it lacked has been read."""

    def __init__(self, look_ups: ImageLookUps, names: frozenset[str], asker: Asker | None) -> None:
        """Take what is known of images, the names of the look-ups, and on whose behalf they are."""
        self._look_ups = look_ups
        self._asker = asker
        self._names = names
        self._answers: dict[str, Answer] = {}
        self._missing = set[str]()
        self._rounds = ROUNDS

    @property
    def looked_up(self) -> Mapping[str, Mapping[str, Answer]]:
        """The results of the look-ups."""
        return dict.fromkeys(self._names, self)

    def __getitem__(self, reference: str) -> Answer:
        answer = self._answers.get(reference) or self._look_ups.get(reference)
        if answer is None:
            self._missing.add(reference)
            raise KeyError(reference)
        self._answers[reference] = answer
        return answer

    def __iter__(self) -> Iterator[str]:
        return iter(self._answers)

    def __len__(self) -> int:
        return len(self._answers)

    async def has_more(self, *, is_denied: bool, seconds: float = READ_SECONDS) -> bool:
        """Read what was missing, or too old for a denial; return whether to judge again."""
        old = {each for each in self._answers if is_denied and self._look_ups.is_old(each)}
        references = sorted(self._missing | old)
        self._rounds -= 1
        if not references or self._rounds <= 0:
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for first in range(0, len(references), AT_ONCE):
                    few = references[first : first + AT_ONCE]
                    await asyncio.gather(*(self._look_ups.read(each, self._asker) for each in few))
        for reference in references:
            late = f"registry {parse_image(reference).registry} has not answered in time"
            self._answers[reference] = self._look_ups.get(reference) or late
        self._missing.clear()
        return True
