"""The cache of registry reads: one read per image at a time, cached answers and failures, rounds of a review."""

import asyncio
import time

import pytest
from prometheus_client import CollectorRegistry

from tests.waiting import eventually
from tests.webhook.registries.conftest import INDEX, hanging
from webhook.engine.image_look_ups import DIGESTS, IMAGE_LOOK_UPS, SIGNATURES, Attached
from webhook.harness.looked_up import written_images
from webhook.registries import cache
from webhook.registries.cache import ImageLookUps, RegistryMetrics
from webhook.registries.in_flight import BytesInFlight, TooManyBytesError
from webhook.registries.room import Asker, Claim, Room

DIGEST = f"sha256:{'a' * 64}"


@pytest.fixture
def counted():
    """The registry of metrics."""
    return CollectorRegistry()


@pytest.fixture
def look_ups(reader, counted) -> ImageLookUps:
    """The look-ups of a process."""
    return ImageLookUps(reader, RegistryMetrics(counted))


async def test_a_review_is_judged_again_when_its_images_are_read(look_ups, registry, counted):
    """The second review reads them from the cache, and sends no request."""
    image = str(registry.image(DIGEST))
    review = look_ups.of_review(frozenset({SIGNATURES}))
    assert review.looked_up[SIGNATURES].get(image) is None
    assert await review.has_more(is_denied=True, seconds=5)
    assert review.looked_up[SIGNATURES].get(image).documents == ()
    assert not await review.has_more(is_denied=True, seconds=5)
    asked = len(registry.asked)
    assert look_ups.of_review(frozenset({SIGNATURES})).looked_up[SIGNATURES].get(image) is not None
    assert len(registry.asked) == asked
    assert counted.get_sample_value("gatewright_registry_lookups_total", {"answer": "read"}) == 1


async def test_a_review_without_images_asks_nothing(look_ups):
    """Without images, there are no look-ups."""
    assert look_ups.of_review(frozenset({"services"})) is None


async def test_one_image_is_read_once_for_all_reviews(look_ups, registry):
    """Fifty reviews at the same moment cost three requests."""
    image = str(registry.image(DIGEST))
    reviews = [look_ups.of_review(frozenset({SIGNATURES})) for _ in range(50)]
    for review in reviews:
        review.looked_up[SIGNATURES].get(image)
    await asyncio.gather(*(each.has_more(is_denied=True, seconds=5) for each in reviews))
    assert len(registry.asked) == 3


async def test_a_denial_never_rests_on_an_old_answer(look_ups, registry, monkeypatch):
    """An image that was signed after the denial is admitted."""
    monkeypatch.setattr(cache, "REFUSAL_SECONDS", 0.0)
    image = str(registry.image(DIGEST))
    review = look_ups.of_review(frozenset({SIGNATURES}))
    review.looked_up[SIGNATURES].get(image)
    await review.has_more(is_denied=True, seconds=5)
    registry.attach(DIGEST, {"a": 1})
    later = look_ups.of_review(frozenset({SIGNATURES}))
    assert later.looked_up[SIGNATURES].get(image).documents == ()
    assert not await later.has_more(is_denied=False, seconds=5)
    assert await later.has_more(is_denied=True, seconds=5)
    assert len(later.looked_up[SIGNATURES].get(image).documents) == 1


async def test_a_cached_digest_outlives_its_registry(look_ups, registry, monkeypatch):
    """A later failed read keeps the cached result."""
    monkeypatch.setattr(cache, "REFUSAL_SECONDS", 0.0)
    registry.attach(DIGEST, {"a": 1})
    image = str(registry.image(DIGEST))
    review = look_ups.of_review(frozenset({SIGNATURES}))
    review.looked_up[SIGNATURES].get(image)
    await review.has_more(is_denied=True, seconds=5)
    registry.bodies.clear()
    registry.handlers["*"] = hanging
    monkeypatch.setattr(cache, "READ_SECONDS", 0.05)
    review.looked_up[SIGNATURES].get(image)
    assert await review.has_more(is_denied=True, seconds=5)
    assert isinstance(review.looked_up[SIGNATURES].get(image), Attached)


async def test_an_absent_registry_gets_few_requests_for_a_digest(look_ups, registry, monkeypatch):
    """Otherwise each review of an unsigned image would wait for the registry."""
    image = str(registry.image(DIGEST))
    review = look_ups.of_review(frozenset({SIGNATURES}))
    review.looked_up[SIGNATURES].get(image)
    await review.has_more(is_denied=True, seconds=5)
    review.looked_up[SIGNATURES].get(image)
    registry.handlers["*"] = hanging
    monkeypatch.setattr(cache, "READ_SECONDS", 0.05)
    now = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: now() + 2 * cache.REFUSAL_SECONDS)
    assert await review.has_more(is_denied=True, seconds=5)
    assert not await review.has_more(is_denied=True, seconds=5)


async def test_a_registry_that_hangs_is_an_answer_in_time(look_ups, registry):
    """The review ends with the reason, before its own timeout."""
    registry.handlers["*"] = hanging
    image = str(registry.image("", "1"))
    review = look_ups.of_review(frozenset({DIGESTS}))
    review.looked_up[DIGESTS].get(image)
    assert await review.has_more(is_denied=True, seconds=0.05)
    assert review.looked_up[DIGESTS].get(image) == (
        f"registry {registry.address} has not answered in time"
    )


async def test_failures_are_remembered_for_a_time(look_ups, registry, counted):
    """The text has the registry's fault."""
    image = str(registry.image("", "1"))
    for _ in range(2):
        review = look_ups.of_review(frozenset({DIGESTS}))
        review.looked_up[DIGESTS].get(image)
        await review.has_more(is_denied=True, seconds=5)
    assert review.looked_up[DIGESTS].get(image) == (
        f"registry {registry.address} has no such image"
    )
    assert len(registry.asked) == 1
    host = {"host": registry.address}
    assert counted.get_sample_value("gatewright_registry_failures_total", host) == 1


async def test_hosts_with_metrics_of_their_own_are_bounded(
    look_ups, registry, counted, monkeypatch
):
    """Users who may name any number of hosts, by a wildcard, do not multiply the series."""
    monkeypatch.setattr(cache, "MAX_HOSTS", 1)
    refusing = [f"127.0.0.1:{port}/shop:1" for port in (1, 2)]
    for image in (str(registry.image("", "1")), *refusing):
        review = look_ups.of_review(frozenset({DIGESTS}))
        review.looked_up[DIGESTS].get(image)
        await review.has_more(is_denied=True, seconds=5)
    hosts = {
        sample.labels["host"]: sample.value
        for metric in counted.collect()
        for sample in metric.samples
        if sample.name == "gatewright_registry_failures_total"
    }
    assert hosts == {registry.address: 1, "other": 2}


async def test_memory_is_bounded(look_ups, registry, monkeypatch):
    """The oldest answers go."""
    monkeypatch.setattr(cache, "MAX_ENTRIES", 2)
    tags = [str(registry.image("", tag)) for tag in ("1", "2", "3")]
    for tag in tags:
        review = look_ups.of_review(frozenset({DIGESTS}))
        review.looked_up[DIGESTS].get(tag)
        await review.has_more(is_denied=True, seconds=5)
    last = look_ups.of_review(frozenset({DIGESTS})).looked_up[DIGESTS]
    assert [last.get(tag) is None for tag in tags] == [True, False, False]


async def test_signatures_in_memory_are_bounded_by_their_size(look_ups, registry, monkeypatch):
    """The limit counts bytes, not only entries."""
    monkeypatch.setattr(cache, "MAX_BYTES", 2_500)
    digests = [f"sha256:{digit * 64}" for digit in "123"]
    for digest in digests:
        registry.attach(digest, {"digest": digest, "a": "x" * 1_000})
        review = look_ups.of_review(frozenset({SIGNATURES}))
        review.looked_up[SIGNATURES].get(str(registry.image(digest)))
        await review.has_more(is_denied=True, seconds=5)
    last = look_ups.of_review(frozenset({SIGNATURES})).looked_up[SIGNATURES]
    known = [last.get(str(registry.image(digest))) is not None for digest in digests]
    assert known == [False, True, True]


async def test_the_queue_of_one_host_is_bounded(look_ups, registry, monkeypatch):
    """Four images are read in parallel for a namespace; beyond the limit, no request is sent."""
    monkeypatch.setattr(cache, "MAX_READS", 10)
    registry.handlers["*"] = hanging
    reviews = [look_ups.of_review(frozenset({DIGESTS}), Asker("shop")) for _ in range(4)]
    for number, review in enumerate(reviews):
        for tag in range(5):
            review.looked_up[DIGESTS].get(str(registry.image("", f"{number}-{tag}")))
    await asyncio.gather(*(each.has_more(is_denied=True, seconds=0.3) for each in reviews))
    assert len(registry.asked) == 4
    (reason,) = {
        review.looked_up[DIGESTS].get(str(registry.image("", f"{number}-{tag}")))
        for number, review in enumerate(reviews)
        for tag in range(5)
    }
    assert reason == f"registry {registry.address} has not answered in time"


async def test_look_ups_of_a_review_are_recorded_as_a_case_sets_them(look_ups, registry):
    """Digests of tags and signatures of digests are written under separate keys."""
    digest = registry.put(INDEX, {"manifests": []}, "1")
    tag, pinned = str(registry.image("", "1")), str(registry.image(digest, "1"))
    registry.attach(digest, {"a": 1})
    review = look_ups.of_review(IMAGE_LOOK_UPS)
    for image in (tag, pinned):
        review.looked_up[SIGNATURES if "@" in image else DIGESTS].get(image)
    await review.has_more(is_denied=False, seconds=5)
    assert written_images(review.looked_up) == {
        DIGESTS: {tag: digest},
        SIGNATURES: {pinned: [{"bundle": {"a": 1}}]},
    }


async def test_the_images_of_one_namespace_delay_no_other(look_ups, registry):
    """A hundred reviews of 60 images hang; each image of another namespace is read at once."""
    registry.handlers["*"] = hanging
    evil = [look_ups.of_review(frozenset({DIGESTS}), Asker("evil", each > 9)) for each in range(20)]
    for number, review in enumerate(evil):
        for tag in range(60):
            review.looked_up[DIGESTS].get(str(registry.image("", f"{number}-{tag}")))
    attack = asyncio.gather(*(each.has_more(is_denied=True, seconds=30) for each in evil))
    await eventually(lambda: len(registry.asked) == 5)  # four, and one of the dry runs
    del registry.handlers["*"]
    digest = registry.put(INDEX, {"manifests": []}, "good")
    review = look_ups.of_review(frozenset({DIGESTS}), Asker("shop"))
    image = str(registry.image("", "good"))
    review.looked_up[DIGESTS].get(image)
    assert await review.has_more(is_denied=True, seconds=30)
    assert review.looked_up[DIGESTS].get(image) == digest
    assert len(registry.asked) == 6
    attack.cancel()


async def test_a_read_that_nobody_waits_for_is_cancelled(look_ups, registry, monkeypatch):
    """Its room is free again, and so is its memory."""
    monkeypatch.setattr(cache, "UNAWAITED_SECONDS", 0.0)
    registry.handlers["*"] = hanging
    review = look_ups.of_review(frozenset({DIGESTS}), Asker("shop"))
    review.looked_up[DIGESTS].get(str(registry.image("", "1")))
    assert await review.has_more(is_denied=True, seconds=0.05)
    await eventually(lambda: not look_ups._reading)


async def test_room_is_for_who_holds_the_least():
    """Dry runs come last; a claim that several ask for counts for the first whose turn comes."""
    room, entered = Room(4), list[str]()

    async def hold(name: str, claim: Claim) -> None:
        async with room.of(claim):
            entered.append(name)
            await asyncio.Event().wait()

    evil, shop, lab = Asker("evil"), Asker("shop"), Asker("lab", True)
    shared = Claim(evil)
    claims = [("evil-1", Claim(evil)), ("evil-2", Claim(evil)), ("evil-3", Claim(evil))]
    claims += [
        ("shared", shared),
        ("dry", Claim(lab)),
        ("dry-2", Claim(lab)),
        ("shop", Claim(shop)),
    ]
    shared.askers.add(shop)
    tasks = [asyncio.create_task(hold(*each)) for each in claims]
    await eventually(lambda: len(entered) == 4)
    assert entered == ["evil-1", "evil-2", "shared", "dry"]
    tasks[3].cancel()
    await eventually(lambda: len(entered) == 5)
    assert entered[-1] == "shop"
    for task in tasks:
        task.cancel()


async def test_the_bytes_of_all_reads_are_bounded():
    """The reads of large answers fail beyond the limit; a small one goes on beside them, and all room is given back."""
    in_flight, most = BytesInFlight(limit=1_000), 0

    async def read(size: int) -> bool:
        nonlocal most
        held = 0
        try:
            for _ in range(size // 10):
                in_flight.add(10)
                held += 10
                most = max(most, in_flight.total)
                await asyncio.sleep(0)
        except TooManyBytesError:
            return False
        finally:
            in_flight.release(held)
        return True

    sizes = [5_000, 5_000, 5_000, 100]
    assert await asyncio.gather(*map(read, sizes)) == [False, False, False, True]
    assert most <= 2_000
    assert in_flight.total == 0
    assert await read(1_000)
