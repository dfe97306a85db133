"""Where a policy module raised an error: for its author, who runs it without a server."""

import os
import traceback
from collections.abc import Iterator
from types import TracebackType

# Modules whose stack frames do not help the author of a policy.
HARNESS = ("webhook.engine", "webhook.harness")


def describe_crash(error: BaseException) -> str:
    """Return type, message and place of an error: `ZeroDivisionError at own/few.py:14: …`."""
    frame, place = _own_frames(error), ""
    first = frame
    while frame is not None:
        if first is not None and _directory(frame) == _directory(first):
            place = f" at {_short(frame.tb_frame.f_code.co_filename)}:{frame.tb_lineno}"
        frame = frame.tb_next
    text = str(error)
    return f"{type(error).__name__}{place}{f': {text}' if text else ''}"


def traceback_lines(error: BaseException) -> Iterator[str]:
    """Yield the lines of the traceback of a policy that raised, starting with its own code."""
    for text in traceback.format_exception(type(error), error, _own_frames(error)):
        yield from text.rstrip().split("\n")


def _own_frames(error: BaseException) -> TracebackType | None:
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__name__", "").startswith(HARNESS):
        frames = frames.tb_next
    return frames


def _directory(frame: TracebackType) -> str:
    return os.path.dirname(frame.tb_frame.f_code.co_filename)  # noqa: PTH120 (not always a path)


def _short(file: str) -> str:
    """Return a file below the working directory relative to it."""
    relative = os.path.relpath(file)
    return file if relative.startswith("..") else relative
