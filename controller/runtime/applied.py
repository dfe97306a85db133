"""What we applied, so that an apply which would change nothing is not sent.

It is skipped when this process sent the same before and the object still looks like the server's answer; or, after a
start, when the parent's status is of its present generation, the object has all that is desired of it, and what was
applied before is all desired still. So a restart costs no request, and what a new release no longer sets goes.
"""

from collections.abc import Callable
from dataclasses import dataclass

from controller.runtime.claims import claims_of
from controller.runtime.drift import covers, digest, fingerprint
from controller.runtime.plan import Object
from kube.resource import Resource


@dataclass(slots=True)
class _Answer:
    """What we sent for an object, or would have, and what it looked like then and in its versions since."""

    wanted: int
    uid: str
    resource_version: str
    shown: int | None
    """None where an earlier process applied it: each change is judged by what is desired."""


class Applied:
    """The last answer to each of our applies."""

    def __init__(self) -> None:
        self._answers: dict[tuple[Resource, str], _Answer] = {}

    def is_right(
        self, resource: Resource, key: str, stored: Object, desired: Object, before: Callable[[], bytes | None]
    ) -> bool:
        """Tell whether applying `desired` would surely change nothing.

        `before` returns the fields that were applied before, None where that is not known or the parent was not seen
        to; it is asked only of what this process did not apply, when that is new or another version.
        """
        metadata = stored["metadata"]
        last = self._answers.get((resource, key))
        if last is not None and last.uid == metadata["uid"]:
            if last.wanted != digest(desired):
                return False
            if last.resource_version == metadata["resourceVersion"]:
                return True
            if last.shown is not None:
                if last.shown != fingerprint(stored, desired):
                    return False
                last.resource_version = metadata["resourceVersion"]
                return True
        applied = before()
        if applied is None or not covers(stored, desired, claims=claims_of(applied)):
            return False
        self._answers[resource, key] = _Answer(digest(desired), metadata["uid"], metadata["resourceVersion"], None)
        return True

    def was_right(self, resource: Resource, key: str, stored: Object, desired: Object) -> bool | None:
        """Tell whether we applied just this to that very object before: what is wrong with it somebody changed.

        None if this process did not apply to it: an earlier one may have.
        """
        last = self._answers.get((resource, key))
        return last.wanted == digest(desired) if last and last.uid == stored["metadata"]["uid"] else None

    def remember(self, resource: Resource, key: str, desired: Object, shown: Object) -> None:
        """Take the server's answer to an apply of `desired`."""
        metadata = shown["metadata"]
        self._answers[resource, key] = _Answer(
            digest(desired), metadata["uid"], metadata["resourceVersion"], fingerprint(shown, desired)
        )

    def forget(self, resource: Resource, key: str) -> None:
        """Forget an object that is gone."""
        self._answers.pop((resource, key), None)
