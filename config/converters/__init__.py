"""Convert custom resources between versions: pure functions, for the webhook's /convert.

A kind with several versions has a module here with `UP`, which converts each other version to the
stored one, `DOWN`, which converts the stored version to each other one, and `NAMES`: the field
names of each other version that differ from those of the stored version.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from config.converters import voteconfig
from config.converters.errors import ConversionError
from kube.resource import JsonObject, group_version

__all__ = ["ConversionError", "as_stored", "as_written", "convert", "stored"]

Converters = Mapping[str, Callable[[JsonObject], JsonObject]]


class KindVersions(NamedTuple):
    """The stored version of a kind, and for each other version its conversions and field names."""

    hub: str
    up: Converters
    down: Converters
    names: Mapping[str, Mapping[str, str]]


KINDS: Mapping[tuple[str, str], KindVersions] = {
    (voteconfig.GROUP, voteconfig.KIND): KindVersions(
        voteconfig.STORED, voteconfig.UP, voteconfig.DOWN, voteconfig.NAMES
    )
}


def convert(object: JsonObject, desired: str) -> JsonObject:
    """Return `object` in the version `desired`, such as `example.com/v1`; `object` is not changed.

    Raises ConversionError if the version does not exist or the object is not valid in its version.
    """
    group, version = group_version(str(object.get("apiVersion")))
    desired_group, desired_version = group_version(desired)
    kind = str(object.get("kind"))
    versions = KINDS.get((group, kind))
    if versions is None or group != desired_group:
        raise ConversionError(
            f"{kind[:64]} of {str(object.get('apiVersion'))[:256]} cannot be converted to "
            f"{desired[:256]}"
        )
    hub, up, down, _ = versions
    for asked in (version, desired_version):
        if asked != hub and asked not in up:
            raise ConversionError(
                f"{kind} has no version {asked[:64]}; it has {', '.join(sorted({hub, *up}))}"
            )
    if version == desired_version:
        return object
    metadata = object.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("annotations") or {}, dict):
        raise ConversionError("metadata: must be an object, and so must its annotations")
    lifted = object if version == hub else up[version](object)
    return {
        **(lifted if desired_version == hub else down[desired_version](lifted)),
        "apiVersion": desired,
    }


def to_stored_version(object: JsonObject) -> JsonObject:
    """Return an object in its stored version.

    An object of a kind with a single version unchanged.
    """
    group, version = group_version(str(object.get("apiVersion")))
    versions = KINDS.get((group, str(object.get("kind"))))
    if versions is None or version not in versions.up:
        return object
    return convert(object, f"{group}/{versions.hub}")


def as_written(text: str, group: str, version: str, kind: str) -> str:
    """Return a message with the field names of the version that its object was written in."""
    versions = KINDS.get((group, kind))
    for stored_name, name in versions.names.get(version, {}).items() if versions else ():
        text = _rename(text, stored_name, name)
    return text


def as_stored(path: str, group: str, kind: str) -> str:
    """Return the path of a field, named as in any version, with the names of the stored version."""
    versions = KINDS.get((group, kind))
    for names in versions.names.values() if versions else ():
        for stored_name, name in names.items():
            path = _rename(path, name, stored_name)
    return path


def _rename(text: str, old: str, new: str) -> str:
    return re.sub(rf"(?<![\w.]){re.escape(old)}(?!\w)", new, text)
