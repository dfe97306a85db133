"""Split a text into its YAML documents, so that a half-typed one hides no other."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from config.documents import Document, DocumentError, parse_documents

# Nothing in a document has three dashes at the beginning of a line.
BOUNDARY = re.compile(r"^(?=---(?:\s|$))", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TextPart:
    """A document of a text, and where it begins: its offset, and its line from 0."""

    text: str
    start: int
    line: int


def parts_of(text: str) -> Iterator[TextPart]:
    """Yield the documents of a text."""
    start = line = 0
    for each in BOUNDARY.split(text):
        yield TextPart(each, start, line)
        start += len(each)
        line += each.count("\n")


@lru_cache(maxsize=1024)
def documents_in(part: str, source: str) -> tuple[Document, ...] | DocumentError:
    """Return the objects of a document, or why it cannot be parsed. Few differ from before."""
    try:
        return tuple(parse_documents(part.encode(errors="replace"), source))
    except DocumentError as error:
        return error
