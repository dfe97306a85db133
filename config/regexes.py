"""Compiles regular expressions with RE2: linear time, bounded memory."""

from typing import Any

MAX_MEMORY = 128 * 1024  # bytes of one expression: its program and the cache for matching


def compile_regex(pattern: str, max_memory: int = MAX_MEMORY) -> Any:
    """Compile a regular expression without groups. Raises ValueError if it is invalid or too large.

    Matching time is proportional to the length of the text times `programsize`; callers cap both.
    """
    # Imported here: it takes 2 MB, which a process without regular expressions does not need.
    import re2

    options = re2.Options()
    options.log_errors, options.max_mem = False, max_memory
    options.never_capture = True
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        raise ValueError(
            reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        ) from None
