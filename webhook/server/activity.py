"""The state of a connection: whether client or server must act next, and since when."""

from collections.abc import Callable, Mapping

# Connections are closed for new ones in this order.
UNUSED, CLIENT, IDLE, ENDED, SERVER = range(5)

# An event on a connection: the next actor, by the present actor.
ConnectionEvent = Mapping[int, int]
REQUEST: ConnectionEvent = {UNUSED: CLIENT, IDLE: CLIENT}
NO_ROOM: ConnectionEvent = {CLIENT: SERVER}
ROOM: ConnectionEvent = {SERVER: CLIENT}
BODY: ConnectionEvent = {CLIENT: SERVER}
ANSWER: ConnectionEvent = {CLIENT: CLIENT, IDLE: CLIENT, SERVER: CLIENT}
NEXT: ConnectionEvent = {CLIENT: IDLE}
END: ConnectionEvent = {CLIENT: ENDED}


class Activity:
    """The state of one connection: `actor` must act next, `since` this time.

    | event   | what happened                                  | who acts then                  |
    | ------- | ---------------------------------------------- | ------------------------------ |
    | REQUEST | the first byte of a request, or one sent ahead | UNUSED, IDLE -> CLIENT         |
    | NO_ROOM | a large body waits until others are answered   | CLIENT -> SERVER               |
    | ROOM    | the body is read                               | SERVER -> CLIENT               |
    | BODY    | all of the body is here                        | CLIENT -> SERVER               |
    | ANSWER  | the answer is sent; the client reads it        | IDLE, CLIENT, SERVER -> CLIENT |
    | NEXT    | the answer is sent whole; a request may follow | CLIENT -> IDLE                 |
    | END     | the last answer is sent whole                  | CLIENT -> ENDED                |

    Any other event for the present actor changes nothing, not even the time. Only a CLIENT can be
    too slow. While the SERVER must act, the connection is not closed for another one.
    """

    __slots__ = ("_clock", "actor", "since")

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start with an unused connection."""
        self._clock = clock
        self.actor, self.since = UNUSED, clock()

    def is_idle(self, since: float) -> bool:
        """Return whether it can be closed for another one: unused, or idle since `since`."""
        return self.actor == UNUSED or (self.actor != SERVER and self.since <= since)

    def on(self, event: ConnectionEvent) -> bool:
        """Change the actor if the event does; return whether it does."""
        actor = event.get(self.actor)
        if actor is None:
            return False
        self.actor, self.since = actor, self._clock()
        return True
