"""Split a text into its YAML documents, so that an incomplete one does not hide others."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from config.documents import Document, DocumentError, parse_documents

# Inside a document, no line begins with three dashes.
BOUNDARY = re.compile(r"^(?=---(?:\s|$))", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TextPart:
    """A document of a text, with its offset and its first line (from 0)."""

    text: str
    start: int
    line: int


def parts_of(text: str) -> Iterator[TextPart]:
    """Yield the documents of a text."""
    start = line = 0
    for piece in BOUNDARY.split(text):
        yield TextPart(piece, start, line)
        start += len(piece)
        line += piece.count("\n")


@lru_cache(maxsize=1024)
def documents_in(part: str, source: str) -> tuple[Document, ...] | DocumentError:
    """Return the objects of a document, or the error; cached, since few documents change."""
    try:
        return tuple(parse_documents(part.encode(errors="replace"), source))
    except DocumentError as error:
        return error
