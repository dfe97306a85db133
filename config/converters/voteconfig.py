"""VoteConfig: lossless conversion between v1alpha1 and v1.

The question moved: `spec.question` of v1alpha1 is `spec.poll.question` of v1. The field that
v1alpha1 lacks (an option's description) is kept in an annotation of the v1alpha1 object, by the
option's id, and restored in v1. So a v1alpha1 client that edits labels or removes an option does
not lose the descriptions of the others. Where an annotation cannot hold them, they stay in place.

Unknown fields pass through: v1alpha1 keeps fields of v1 that were written without conversion.
"""

import orjson

from config.api.voteconfig import GROUP, KIND, OptionV1Alpha1, VoteConfig, VoteConfigV1Alpha1
from config.converters.errors import ConversionError
from kube.resource import JsonObject

STORED, OLD = VoteConfig.definition.version, VoteConfigV1Alpha1.definition.version
KEPT = f"{GROUP}/v1"  # the annotation with the fields that v1alpha1 lacks
AT_KEPT = f"metadata.annotations[{KEPT}]: "
MAX_ANNOTATIONS = 256 * 1024  # bytes of all names and values; the API server allows no more
OPTION_FIELDS = frozenset(OptionV1Alpha1.model_fields)


def to_v1(old: JsonObject) -> JsonObject:
    """Return a v1alpha1 object as v1."""
    metadata, kept = _without_annotation(old["metadata"])
    spec = dict(_object(old, "spec"))
    poll = _object(spec, "poll", "spec.")
    if "question" in spec:
        kept_poll = _object(kept, "poll", AT_KEPT)
        spec["poll"] = {**kept_poll, **poll, "question": spec.pop("question")}
    elif "poll" in kept:
        spec["poll"] = _object(kept, "poll", AT_KEPT)
    if "options" in spec:
        rest: dict[str, list[JsonObject]] = {}
        for object in reversed(_objects(kept, "options", AT_KEPT)):
            rest.setdefault(_id(object), []).append(object)
        options = _objects(spec, "options", "spec.")
        spec["options"] = [
            {**(left.pop() if (left := rest.get(_id(option))) else {}), **option}
            for option in options
        ]
    return _replace(old, metadata, spec)


def to_v1alpha1(new: JsonObject) -> JsonObject:
    """Return a v1 object as v1alpha1."""
    metadata, _ = _without_annotation(new["metadata"], read=False)
    spec = dict(_object(new, "spec"))
    kept: JsonObject = {}
    options = _objects(spec, "options", "spec.")
    if "poll" in spec:
        poll = dict(_object(spec, "poll", "spec."))
        del spec["poll"]
        if "question" in poll:
            spec["question"] = poll.pop("question")
            kept = {"poll": poll} if poll else {}
        else:
            kept = {"poll": poll}
    if "options" in spec:
        spec["options"] = [
            {key: option[key] for key in option if key in OPTION_FIELDS} for option in options
        ]
        ids = {_id(option) for option in options if option.keys() - OPTION_FIELDS}
        # An id may be repeated.
        rest = [_extra_fields(option) for option in options if _id(option) in ids]
        kept |= {"options": rest} if rest else {}
    if kept:
        text = orjson.dumps(kept, option=orjson.OPT_SORT_KEYS).decode()
        annotations = {**(metadata.get("annotations") or {}), KEPT: text}
        if sum(len(f"{key}{annotations[key]}".encode()) for key in annotations) <= MAX_ANNOTATIONS:
            metadata = {**metadata, "annotations": annotations}
        else:  # v1alpha1 keeps unknown fields, too
            spec |= kept | ({"options": options} if "options" in kept else {})
    return _replace(new, metadata, spec)


UP = {OLD: to_v1}
DOWN = {OLD: to_v1alpha1}
NAMES = {OLD: {"spec.poll.question": "spec.question"}}
__all__ = ["DOWN", "GROUP", "KEPT", "KIND", "NAMES", "STORED", "UP"]


def _replace(object: JsonObject, metadata: JsonObject, spec: JsonObject) -> JsonObject:
    """Return an object with this metadata and spec; without a spec if both are empty."""
    return {**object, "metadata": metadata} | ({"spec": spec} if "spec" in object or spec else {})


def _without_annotation(
    metadata: JsonObject, *, read: bool = True
) -> tuple[JsonObject, JsonObject]:
    """Return metadata without the conversion annotation, and the annotation's contents."""
    annotations = dict(metadata.get("annotations") or {})
    if KEPT not in annotations:
        return metadata, {}
    text = annotations.pop(KEPT)
    rest = {key: value for key, value in metadata.items() if key != "annotations"}
    metadata = {**rest, "annotations": annotations} if annotations else rest
    if not read:
        return metadata, {}
    try:
        kept = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ConversionError(f"{AT_KEPT}is not JSON: {error}; remove it") from None
    if not isinstance(kept, dict):
        raise ConversionError(f"{AT_KEPT}must be a JSON object; remove it")
    return metadata, kept


def _extra_fields(option: JsonObject) -> JsonObject:
    """Return the fields that v1alpha1 lacks, with the option's id."""
    return {key: option[key] for key in option if key == "id" or key not in OPTION_FIELDS}


def _id(option: JsonObject) -> str:
    """Return the id of an option; "" for one without, or of a wrong type."""
    option_id = option.get("id")
    return option_id if isinstance(option_id, str) else ""


def _object(parent: JsonObject, field: str, where: str = "") -> JsonObject:
    value = parent.get(field)
    if value is not None and not isinstance(value, dict):
        raise ConversionError(f"{where}{field}: must be an object")
    return value or {}


def _objects(parent: JsonObject, field: str, where: str) -> list[JsonObject]:
    value = parent.get(field)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ConversionError(f"{where}{field}: must be a list of objects")
    return value
