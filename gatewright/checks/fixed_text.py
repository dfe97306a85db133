"""A YAML or JSON text whose fields are changed, each change verified before it is kept."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
import yaml

from config.documents import Document, parse_documents, readable_documents
from config.edits import EditableText, EditError, TextEdit, apply_edits, is_at, replace_at
from kube.resource import FieldPath, PathElement

PatchOperation = Mapping[str, Any]  # of a JSON Patch (RFC 6902)
DocumentFix = tuple[Document, PatchOperation]
FieldChange = tuple[FieldPath, Any]  # a new value; None removes the field
# Bytes of text, and of its values as JSON, that are parsed to verify the changes of one text: about
# half a minute. A text of 1,500 containers with five changes each needs 5 MB.
MAX_VERIFIED = 64 << 20


class PlacedChange(NamedTuple):
    """A change of a document, and the list item with the changed field (the object itself: `()`).

    Changes of different list items can be made at once; those of one item are made in turn.
    """

    document: int
    item: FieldPath
    change: FieldChange


class FixedText:
    """A text whose documents are changed, many fields of different objects at once.

    Each change is verified before it is kept; `count` is the number of kept changes, `shared` that
    of those whose text is that of other fields, too, and `too_many` that of those left out since
    verifying them would cost more than MAX_VERIFIED.
    """

    def __init__(self, text: str, source: str) -> None:
        """Parse the text of a file; unreadable documents stay as they are."""
        self.text = text
        self.count = self.shared = self.too_many = 0
        self._source = source
        self._documents = self._parse(text)
        self._queues: dict[tuple[int, FieldPath], deque[PlacedChange]] = {}
        self._verified = 0
        self._cost = self._cost_of_parse()

    def change(self, fixes: Iterable[DocumentFix]) -> int:
        """Apply as many changes as possible, those within one list item one after the other.

        Return how many were left out because the text has other values than the rendered object.
        """
        left_out = self._queue(fixes)
        while any(self._queues.values()):
            batch = [queue.popleft() for queue in self._queues.values() if queue]
            # Where edits have the same place, that of the inner object comes first in the text.
            self._carry_out(sorted(batch, key=lambda each: len(each.item)))
        return left_out

    def _queue(self, fixes: Iterable[DocumentFix]) -> int:
        """Queue the changes that the text can have; return the number of others."""
        places = {each.place(): index for index, each in enumerate(self._documents)}
        # By the id of a rendered document, of which several may be one text: whether that has its
        # very values.
        is_same = dict[int, bool]()
        lists = set[tuple[int, FieldPath]]()  # that get new items
        queued = set[tuple[int, bytes]]()
        left_out = 0
        for document, operation in fixes:
            index = places[document.place()]
            own = self._documents[index].value
            path = _steps(operation["path"], document.value)
            if id(document) not in is_same:
                is_same[id(document)] = document.value == own
            if operation["op"] == "insert" and isinstance(path[-1], int):
                written = _appended_path(path, document.value, own)
                lists.add((index, path[:-1]))
            else:
                written = path if is_same[id(document)] else written_path(path, document.value, own)
            if written is None:
                left_out += 1
                continue
            change = (written, operation.get("value"))
            if (key := (index, orjson.dumps(change))) in queued:
                continue
            queued.add(key)
            item = _item_of(written)
            grown = (size for size in range(len(written)) if (index, written[:size]) in lists)
            if (size := next(grown, None)) is not None:
                item = _item_of(written[:size])  # after the items that are added to this list
            queue = self._queues.setdefault((index, item), deque())
            queue.append(PlacedChange(index, item, change))
        return left_out

    def _carry_out(self, batch: Sequence[PlacedChange]) -> None:
        """Apply as many of the changes as possible: if the whole batch fails, try each half."""
        if self._verified + self._cost > MAX_VERIFIED:
            self.too_many += len(batch)
            return
        if self._carried_out(batch):
            return
        if len(batch) > 1:
            self._carry_out(batch[: len(batch) // 2])
            self._carry_out(batch[len(batch) // 2 :])
        elif not self._carried_out(batch, apart=True):
            self.shared += 1

    def _carried_out(self, batch: Sequence[PlacedChange], *, apart: bool = False) -> bool:
        """Apply the changes, and those of the queues that the same text makes.

        Return False, with nothing changed, if the result is not exactly the intended one.
        """
        text = EditableText(self.text, is_json=self._source.endswith(".json"))
        edits, expected = dict[TextEdit, None](), [each.value for each in self._documents]
        nodes = dict[int, yaml.Node]()
        self._verified += self._cost
        try:
            for index, _, change in batch:
                if (node := nodes.get(index)) is None:
                    node = nodes[index] = self._documents[index].node
                value = expected[index]
                edit = text.edit_apart(node, value, *change) if apart else text.edit(node, *change)
                edits[edit] = None  # aliases share an edit
                expected[index] = replace_at(value, *change)
            new = apply_edits(self.text, edits)
            documents = self._parse(new)
            made = self._also_made(batch, expected, [each.value for each in documents])
        except (EditError, ValueError):
            return False
        if [each.value for each in documents] != expected:
            return False
        for key, changes in made.items():
            left = (change for change in self._queues[key] if change not in changes)
            self._queues[key] = deque(left)
        self.text, self._documents = new, documents
        self._cost = self._cost_of_parse()
        self.count += len(batch) + sum(map(len, made.values()))
        return True

    def _also_made(
        self, batch: Sequence[PlacedChange], expected: list[Any], found: list[Any]
    ) -> dict[tuple[int, FieldPath], list[PlacedChange]]:
        """Return the queued changes that edits made, too, and add them to the expected values."""
        made: dict[tuple[int, FieldPath], list[PlacedChange]] = {}
        if len(found) != len(expected):
            return made
        changed = {each.document for each in batch}
        others = {index for index in changed if found[index] != expected[index]}
        for key, queue in self._queues.items() if others else ():
            if key[0] in others:
                made[key] = [change for change in queue if is_at(found[key[0]], *change.change)]
                for change in made[key]:
                    expected[key[0]] = replace_at(expected[key[0]], *change.change)
        return made

    def _cost_of_parse(self) -> int:
        return len(self.text) + len(orjson.dumps([each.value for each in self._documents]))

    def _parse(self, text: str) -> list[Document]:
        return readable_documents(parse_documents(text.encode(), self._source))[0]


def _item_of(path: FieldPath) -> FieldPath:
    """Return the path of the innermost list item that contains a field; `()` outside of lists."""
    for size in range(len(path) - 1, 0, -1):
        if isinstance(path[size - 1], int):
            return path[:size]
    return ()


def _steps(pointer: str, value: Any) -> FieldPath:
    """Return the path that a JSON pointer names in a value; numbers are indexes only in lists."""
    path = list[PathElement]()
    for part in pointer.split("/")[1:]:
        is_index = isinstance(value, list) and part.isdigit()
        step = int(part) if is_index else part.replace("~1", "/").replace("~0", "~")
        path.append(step)
        value = value_below(value, step)
    return tuple(path)


def _appended_path(path: FieldPath, judged: Any, written: Any) -> FieldPath | None:
    """Return the path of an item that is added at the end of a list; None if it is elsewhere."""
    for step in path[:-1]:
        judged, written = value_below(judged, step), value_below(written, step)
    is_last = isinstance(judged, list) and judged == written and path[-1] == len(judged)
    return path if is_last else None


def written_path(path: FieldPath, judged: Any, written: Any) -> FieldPath | None:
    """Return the path, in the written object, of a field of the object rendered from it.

    Return None if the written object has another value there. List items are matched by name.
    """
    if not path or judged == written:
        return path if judged == written else None
    step = at = path[0]
    item = value_below(judged, step)
    if isinstance(written, list):
        same = [index for index, each in enumerate(written) if _name(each) == _name(item)]
        if not same:
            return None
        at = step if step in same else same[0]
    below = written_path(path[1:], item, value_below(written, at))
    return None if below is None else (at, *below)


def value_below(value: Any, step: PathElement) -> Any:
    """Return the value at a key or index; None if there is none."""
    try:
        return value[step]
    except (LookupError, TypeError):
        return None


def _name(item: Any) -> Any:
    return item.get("name", item) if isinstance(item, dict) else item
