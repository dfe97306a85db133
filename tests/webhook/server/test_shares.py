"""Fair shares of client addresses."""

import asyncio

from webhook.server.shares import Shares


def filled(shares: Shares, address: str) -> int:
    """Let an address take as much as it can; return how much that is."""
    taken = 0
    while shares.has_room(address, 1):
        shares.count(address, 1)
        taken += 1
    return taken


def test_an_address_gets_half_of_what_the_others_leave():
    """However many addresses there are, each further one finds room."""
    shares = Shares(1000)
    assert [filled(shares, address) for address in "abc"] == [500, 250, 125]


def test_released_shares_can_be_taken_again():
    """An address without anything is forgotten."""
    shares = Shares(10)
    shares.count("a", 5)
    assert not shares.has_room("a", 1)
    shares.count("a", -5)
    assert (shares.total(), filled(shares, "b")) == (0, 5)


async def test_an_address_without_room_waits_until_enough_is_released():
    """An address without room waits."""
    shares = Shares(10)
    await shares.take("a", 5)
    waiting = asyncio.create_task(shares.take("a", 3))
    shares.count("a", -1)
    await asyncio.sleep(0)
    assert (waiting.done(), shares.total()) == (False, 4)
    shares.count("a", -2)
    await waiting
    assert shares.total() == 5


async def test_the_end_of_all_is_awaited():
    """The end is reached only when all addresses have released their shares."""
    shares = Shares(10)
    await shares.all_given_back()
    shares.count("a", 1)
    shares.count("b", 1)
    waiting = asyncio.create_task(shares.all_given_back())
    for address, is_done in (("a", False), ("b", True)):
        await asyncio.sleep(0)
        shares.count(address, -1)
        await asyncio.sleep(0)
        assert waiting.done() == is_done
