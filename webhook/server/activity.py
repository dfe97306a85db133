"""Activity: who acts on a connection, and since when. It decides who makes room."""

from collections.abc import Callable, Mapping

# In the order in which connections make room for new ones.
UNUSED, CLIENT, IDLE, ENDED, SERVER = range(5)

# What happens on a connection: who acts before it, and who acts then.
ConnectionEvent = Mapping[int, int]
REQUEST: ConnectionEvent = {UNUSED: CLIENT, IDLE: CLIENT}
NO_ROOM: ConnectionEvent = {CLIENT: SERVER}
ROOM: ConnectionEvent = {SERVER: CLIENT}
BODY: ConnectionEvent = {CLIENT: SERVER}
ANSWER: ConnectionEvent = {CLIENT: CLIENT, IDLE: CLIENT, SERVER: CLIENT}
NEXT: ConnectionEvent = {CLIENT: IDLE}
END: ConnectionEvent = {CLIENT: ENDED}


class Activity:
    """Who acts on one connection: `actor`, and `since` when.

    | event   | what happened                                  | who acts then                  |
    | ------- | ---------------------------------------------- | ------------------------------ |
    | REQUEST | the first byte of a request, or one sent ahead | UNUSED, IDLE -> CLIENT         |
    | NO_ROOM | a large body waits until others are answered   | CLIENT -> SERVER               |
    | ROOM    | the body is read                               | SERVER -> CLIENT               |
    | BODY    | all of the body is here                        | CLIENT -> SERVER               |
    | ANSWER  | the answer is sent; the client reads it        | IDLE, CLIENT, SERVER -> CLIENT |
    | NEXT    | the answer is sent whole; a request may follow | CLIENT -> IDLE                 |
    | END     | the last answer is sent whole                  | CLIENT -> ENDED                |

    An event that a row does not name for the present actor changes nothing, the clock included.
    Only a CLIENT can be too slow. No connection is closed for another while the SERVER acts on it.
    """

    __slots__ = ("_clock", "actor", "since")

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin with a connection that has carried nothing yet."""
        self._clock = clock
        self.actor, self.since = UNUSED, clock()

    def is_idle(self, since: float) -> bool:
        """Return whether the connection makes room for another: never used, or not since then."""
        return self.actor == UNUSED or (self.actor != SERVER and self.since <= since)

    def on(self, event: ConnectionEvent) -> bool:
        """Let another side act if the event says so; return whether it does."""
        actor = event.get(self.actor)
        if actor is None:
            return False
        self.actor, self.since = actor, self._clock()
        return True
