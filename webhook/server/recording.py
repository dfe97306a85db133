"""Records a sample of reviews, one JSON object a line: what `gatewright impact --reviews` reads.

The file is for its owner alone: values of Secrets, ConfigMaps and environment variables are
redacted; annotations, commands, arguments and everything else that a policy may judge are not.
"""

import logging
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from config.documents import DocumentError

MAX_BYTES = 100 * 1024 * 1024  # maximum size of the file; then recording ends
PRIVATE = 0o600
REDACTED = "redacted"
HOLDERS_OF_VALUES = ("Secret", "ConfigMap", "AppConfig")
VALUES = ("data", "stringData", "binaryData")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

log = logging.getLogger("gatewright.webhook.recording")


class Recorder:
    """Appends reviews to one file, which only its owner may read."""

    def __init__(self, path: Path, share: float, draw: Callable[[], float] = random.random) -> None:
        """Take the file, and the share of reviews to record (0 to 1).

        Raises DocumentError if the file cannot be written.
        """
        self._path, self._share, self._draw = path, share, draw
        try:
            with open(path, "ab", opener=_private) as file:
                os.fchmod(file.fileno(), PRIVATE)
                self._size = file.tell()
        except OSError as error:
            raise DocumentError(
                f"{path}: reviews cannot be recorded there: {error.strerror or error}"
            ) from None

    def record(self, body: bytes) -> None:
        """Record the body of a judged review, if it is in the sample.

        A review that cannot be redacted is left out. A file that cannot be written ends recording.
        Both are logged, and neither changes an answer.
        """
        if self._share <= 0 or self._draw() >= self._share:
            return
        try:
            line = redact(body)
        except (ValueError, TypeError, RecursionError) as error:
            log.warning("a review was not recorded: %s", error)
            return
        self._size += len(line)
        try:
            if self._size > MAX_BYTES:
                raise OSError(f"it has {MAX_BYTES:,} bytes")
            with open(self._path, "ab", opener=_private) as file:
                file.write(line)
        except OSError as error:
            log.warning(
                "no more reviews are recorded in %s: %s", self._path, error.strerror or error
            )
            self._share = 0


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE)


def redact(body: bytes) -> bytes:
    """Return a review as one line without values of Secrets, ConfigMaps and environment variables.

    Keys and names stay, since policies judge them; managedFields, the last applied configuration,
    and the user's uid and extra fields are removed.
    """
    review = orjson.loads(body)
    request = review["request"]
    user = request.get("userInfo") or {}
    request["userInfo"] = {key: user[key] for key in ("username", "groups") if key in user}
    for name in ("object", "oldObject"):
        if isinstance(request.get(name), dict):
            redact_object(request[name])
    return orjson.dumps(review, option=orjson.OPT_APPEND_NEWLINE)


def redact_object(object: dict[str, Any]) -> None:
    """Redact the values of an object in place, and remove fields that repeat it."""
    _redact_env(object)
    if object.get("kind") in HOLDERS_OF_VALUES:
        _redact_values(object)
        _redact_values(object.get("spec"))
    metadata = object.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
        if isinstance(metadata.get("annotations"), dict):
            metadata["annotations"].pop(LAST_APPLIED, None)


def _redact_values(holder: Any) -> None:
    for field in VALUES:
        if isinstance(holder, dict) and isinstance(holder.get(field), dict):
            holder[field] = dict.fromkeys(holder[field], REDACTED)


def _redact_env(value: Any) -> None:
    """Redact the values of environment variables, wherever they are."""
    if isinstance(value, list):
        for item in value:
            _redact_env(item)
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        if key != "env":
            _redact_env(item)
        elif isinstance(item, dict):  # a map by name, as in some custom resources
            value["env"] = dict.fromkeys(item, REDACTED)
        elif isinstance(item, list):
            for variable in item:
                if isinstance(variable, dict) and "value" in variable:
                    variable["value"] = REDACTED
