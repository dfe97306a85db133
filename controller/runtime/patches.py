"""Fields that we write of somebody else's objects: where they are otherwise, and not for ever against their will."""

from collections.abc import Callable

from controller.runtime.applied import Applied
from controller.runtime.contests import Contests, last_manager
from controller.runtime.drift import covers, drifted
from controller.runtime.parent import Parent
from controller.runtime.plan import Object, Patch
from controller.runtime.view import View
from kube.client import Client
from kube.resource import Resource


class Patches:
    """Makes the patches of one kind's plans; `wrote` is called with each answer."""

    def __init__(self, kind: str, client: Client, wrote: Callable[[Parent, Resource, str, Object], None]) -> None:
        self._kind = kind
        self._client = client
        self._wrote = wrote
        self._sent: dict[tuple[Resource, str], Applied] = {}  # by object; within, by parent
        self._contests = Contests()

    async def write(self, patch: Patch, parent: Parent, view: View) -> bool:
        """Make a patch if it is needed; tell whether something was sent.

        What the API server answered last is no reason to insist: a webhook may have set other values on the way in.
        """
        reference, resource = patch.reference, patch.reference.resource
        key = resource.key(reference.namespace, reference.name)
        current = view.get(resource, key)
        if current is None or current["metadata"]["uid"] != reference.uid:
            return False
        named = {"name": reference.name, "namespace": reference.namespace, "uid": reference.uid}
        wanted = {**patch.fields, "metadata": {**patch.fields.get("metadata", {}), **named}}
        sent = self._sent.setdefault((resource, key), Applied())
        was_right = bool(sent.was_right(resource, parent.uid, current, wanted))
        error = self._contests.error((resource, key)) if was_right else None
        is_right = covers(current, patch.fields) or sent.is_right(resource, parent.uid, current, wanted, lambda: None)
        if error and (is_right or not self._contests.may_put_right((resource, key))):
            raise error
        if not is_right:
            await self._put_right(current, wanted, key, resource, parent, view, again=was_right)
        return not is_right

    async def _put_right(
        self, current: Object, wanted: Object, key: str, resource: Resource, parent: Parent, view: View, *, again: bool
    ) -> None:
        place = (resource, key)
        if again and self._contests.is_near(place):
            current = await self._client.get(resource, wanted["metadata"]["name"], wanted["metadata"]["namespace"])
        manager = f"gatewright-{self._kind}-{parent.uid}"  # of its own: two parents may patch one object
        answer = await self._client.apply(resource, wanted, field_manager=manager, force=True)
        is_changed = answer["metadata"]["resourceVersion"] != current["metadata"]["resourceVersion"]
        view.answered(resource, key, answer)
        self._sent[place].remember(resource, parent.uid, wanted, answer)
        self._wrote(parent, resource, key, answer)
        if again and is_changed:
            what = f"{resource.kind} {wanted['metadata']['name']}: {drifted(current, wanted) or 'it'}"
            self._contests.put_right(place, f"{what} is changed again and again by {last_manager(current)}")
        if again and (error := self._contests.error(place)):
            raise error

    def forget(self, resource: Resource, key: str) -> None:
        """Forget an object that is gone."""
        self._sent.pop((resource, key), None)
        self._contests.forget((resource, key))
