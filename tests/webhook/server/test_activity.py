"""States of a connection and their timers: whether client or server must act next."""

import pytest

from webhook.server import activity as events
from webhook.server.activity import CLIENT, ENDED, IDLE, SERVER, UNUSED, Activity

STATES = {"UNUSED": UNUSED, "CLIENT": CLIENT, "IDLE": IDLE, "ENDED": ENDED, "SERVER": SERVER}
EVENTS = ("REQUEST", "NO_ROOM", "ROOM", "BODY", "ANSWER", "NEXT", "END")


def documented() -> dict[str, dict[int, int]]:
    """Return the table of the docstring."""
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in (Activity.__doc__ or "").splitlines()
        if "->" in line
    ]
    return {
        event: {
            STATES[before]: STATES[change.split(" -> ")[1]]
            for before in change.split(" -> ")[0].split(", ")
        }
        for event, _, change in rows
    }


def test_the_table_of_the_docstring_is_the_code():
    """The table of events and actions in the docstring equals the code."""
    assert documented() == {name: getattr(events, name) for name in EVENTS}


def test_a_large_review_and_the_next_one():
    """The clock restarts on each action, and only then."""
    clock = iter(range(100))
    activity = Activity(lambda: next(clock))
    seen = [(activity.actor, activity.since)]
    for name in ("REQUEST", "REQUEST", "NO_ROOM", "ROOM", "BODY", "ANSWER", "NEXT", "REQUEST"):
        activity.on(getattr(events, name))
        seen.append((activity.actor, activity.since))
    assert seen == [
        (UNUSED, 0),
        (CLIENT, 1),
        (CLIENT, 1),
        (SERVER, 2),
        (CLIENT, 3),
        (SERVER, 4),
        (CLIENT, 5),
        (IDLE, 6),
        (CLIENT, 7),
    ]


@pytest.mark.parametrize("event", EVENTS)
def test_nothing_happens_after_the_last_answer(event):
    """Bytes that a client sends afterwards start no clock."""
    activity = Activity(lambda: 0.0)
    for name in ("REQUEST", "BODY", "ANSWER", "END"):
        activity.on(getattr(events, name))
    assert not activity.on(getattr(events, event))
    assert activity.actor == ENDED
