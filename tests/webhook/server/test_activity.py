"""Who acts on a connection: the table of the states, and the clock."""

import pytest

from webhook.server.activity import (
    AFTER,
    CLIENT,
    ENDED,
    IDLE,
    SERVER,
    UNUSED,
    Activity,
    ConnectionEvent,
)

STATES = {"UNUSED": UNUSED, "CLIENT": CLIENT, "IDLE": IDLE, "ENDED": ENDED, "SERVER": SERVER}


def documented() -> dict[ConnectionEvent, dict[int, int]]:
    """Return the table of the docstring."""
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in (Activity.__doc__ or "").splitlines()
        if "->" in line
    ]
    return {
        ConnectionEvent[event]: {
            STATES[before]: STATES[change.split(" -> ")[1]]
            for before in change.split(" -> ")[0].split(", ")
        }
        for event, _, change in rows
    }


def test_the_table_of_the_docstring_is_the_code():
    """It says who acts after each event, and from where."""
    assert documented() == AFTER


def test_a_large_review_and_the_next_one():
    """The clock restarts whenever somebody acts, and only then."""
    clock = iter(range(100))
    activity = Activity(lambda: next(clock))
    seen = [(activity.actor, activity.since)]
    for name in ("REQUEST", "REQUEST", "NO_ROOM", "ROOM", "BODY", "ANSWER", "NEXT", "REQUEST"):
        activity.on(ConnectionEvent[name])
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


@pytest.mark.parametrize("event", ConnectionEvent)
def test_nothing_happens_after_the_last_answer(event):
    """What a client sends then starts no clock."""
    activity = Activity(lambda: 0.0)
    for name in ("REQUEST", "BODY", "ANSWER", "END"):
        activity.on(ConnectionEvent[name])
    assert not activity.on(event)
    assert activity.actor == ENDED
