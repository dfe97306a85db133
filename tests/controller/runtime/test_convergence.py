"""Whatever users, other controllers and the network do, in any order: the objects converge to the plan."""

import asyncio
import random
from collections.abc import Callable

import pytest

from gatewright.testing.fake_apiserver.refusals import StatusError
from kube.errors import ApiError
from kube.resource import JsonObject
from tests.controller.runtime.conftest import CONFIGMAP, NAMESPACE, Running, Things
from tests.controller.runtime.test_reconciler import single

NAMES = ("a", "b", "c", "d", "e")
STEPS = 150


class Chaos:
    """A client that makes random changes to a few Things, and remembers the last values."""

    def __init__(self, things: Things, chance: random.Random) -> None:
        self.things = things
        self.server = things.server
        self.chance = chance
        self.asked: dict[str, int] = {}

    def do_something(self) -> None:
        """Make one random change; a rejected one is ignored."""
        name = self.chance.choice(NAMES)
        deeds: list[Callable[[str], object]] = [
            self.ask,
            self.ask,
            self.forget,
            self.remove_child,
            self.edit_child,
            lambda _: self.server.cut_watches(),
            lambda _: self.server.close_watches(),
            lambda _: self.server.expire_watches(),
            lambda _: self.server.fail(2, self.chance.choice([409, 429, 500, 503])),
        ]
        try:
            self.chance.choice(deeds)(name)
        except (ApiError, StatusError):
            return

    def ask(self, name: str) -> None:
        """Create a Thing, or change its spec."""
        size = self.chance.randrange(1000)
        if self.server.get(self.things.resource, name, NAMESPACE):
            self.server.change(self.things.resource, name, {"spec": {"size": size}}, NAMESPACE)
        else:
            self.things.create(name, size)
        self.asked[name] = size

    def forget(self, name: str) -> None:
        """Delete a Thing."""
        self.server.delete(self.things.resource, name, NAMESPACE)
        self.asked.pop(name, None)

    def remove_child(self, name: str) -> None:
        """Delete the controller's child."""
        self.server.delete(CONFIGMAP, name, NAMESPACE)

    def edit_child(self, name: str) -> None:
        """Change the controller's child."""
        self.server.change(CONFIGMAP, name, {"data": {"size": "edited"}}, NAMESPACE)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(6, 20))]
)
async def test_in_the_end_all_is_as_planned(running: Running, seed: int) -> None:
    """Each remaining Thing has its ConfigMap with the last value, and is ready for that generation."""

    def is_right(name: str, size: int) -> Callable[[JsonObject], bool]:
        def holds(child: JsonObject) -> bool:
            thing = things.server.get(things.resource, name, NAMESPACE) or {}
            settled = (
                thing.get("status", {}).get("observedGeneration") == thing["metadata"]["generation"]
            )
            return settled and bool(child["data"] == {"size": str(size)})

        return holds

    async with running(single) as things:
        chaos = Chaos(things, random.Random(seed))
        for _ in range(STEPS):
            chaos.do_something()
            await asyncio.sleep(0)  # let the others have a turn
        things.server.requests.faults.clear()
        for name, size in chaos.asked.items():
            await things.until(CONFIGMAP, name, is_right(name, size))
            await things.until_ready(name=name)
        left = {each["metadata"]["name"] for each in things.server.list(CONFIGMAP, NAMESPACE)}
    assert set(chaos.asked) <= left
