"""Log formats: JSON lines on stderr, or text if stderr is a terminal."""

import functools
import logging
import sys
import time
import traceback
from typing import Any, TextIO

import orjson

MAX_VALUE = 2000  # characters; clients choose the names in a request


class JsonLines(logging.StreamHandler[TextIO]):
    """One JSON object per line: time, level, logger, message, then the fields of the record."""

    def handle(self, record: logging.LogRecord) -> bool:
        """Write a line without logging's lock: each line is one write call, without filters."""
        self.emit(record)
        return True

    def flush(self) -> None:
        """Do nothing: stderr is unbuffered, and logging calls this after each line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line; JSON escapes all control characters."""
        line = {
            "time": f"{_clock(int(record.created), '%Y-%m-%dT%H:%M:%S')}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1]:
            return _json(
                {**_cut(line), "exception": "".join(traceback.format_exception(record.exc_info[1]))}
            )
        written = _json(line)
        return written if len(written) <= MAX_VALUE else _json(_cut(line))


class Text(logging.Formatter):
    """A short readable line: time, level, message, then the fields as key=value."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line, and the traceback below it if there is one."""
        area = record.name.removeprefix("gatewright.")
        fields = "".join(
            f" {key}={value}" for key, value in _cut(getattr(record, "fields", {})).items()
        )
        line = (
            f"{_clock(int(record.created), '%H:%M:%S')} {record.levelname:<7} {area}: "
            f"{record.getMessage()}{fields}"
        )
        line = "".join(
            character if character.isprintable() else ascii(character)[1:-1] for character in line
        )
        if record.exc_info and record.exc_info[1]:
            line += "\n" + "".join(traceback.format_exception(record.exc_info[1])).rstrip()
        return line


def install(level: str = "info", *, text: bool | None = None) -> None:
    """Send all log records to stderr.

    The format is text if `text` is true or, by default, if stderr is a terminal.
    """
    as_text = sys.stderr.isatty() if text is None else text
    handler = logging.StreamHandler(sys.stderr) if as_text else JsonLines(sys.stderr)
    if as_text:
        handler.setFormatter(Text())
    # No caller, thread or process: their look-up takes as long as the rest of a line.
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


@functools.lru_cache(maxsize=1)  # a busy second has thousands of lines
def _clock(second: int, form: str) -> str:
    return time.strftime(form, time.gmtime(second))


def _json(line: dict[str, Any]) -> str:
    return orjson.dumps(line, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def _cut(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with long texts cut."""
    return {
        key: value[:MAX_VALUE] if isinstance(value, str) else value for key, value in fields.items()
    }
