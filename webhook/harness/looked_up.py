"""Check the look-ups that a case sets: a case with a typo would test nothing."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from config.faults import did_you_mean
from config.field_paths import value_at
from config.image_references import ImageReferenceError, parse_image
from config.schemas import unknown_fields
from kube.resource import group_kind
from webhook.engine import PARENT
from webhook.engine.image_look_ups import DIGESTS, SIGNATURES, Attached, SignatureDocument
from webhook.engine.look_ups import LOOK_UPS, summary
from webhook.engine.violation import JSON_TYPES
from webhook.harness.bases import has_smallest, smallest

IMAGES = (DIGESTS, SIGNATURES)
SUMMARY = summary({"metadata": {"name": ""}})  # the fields of objects that are looked up in part

CaseFaults = Iterator[tuple[str, str]]  # path below the case, and message


def look_up_faults(looked_up: Mapping[str, Any], parent_kind: str, namespace: str) -> CaseFaults:
    """Yield the errors of all look-ups.

    `parent_kind` is the kind that the case's subresource belongs to.
    """
    for name, value in looked_up.items():
        path = f"looked_up.{name}"
        if name == PARENT:
            yield from _faults(path, value, [parent_kind], namespace)
        elif name in IMAGES:
            yield from _image_faults(path, name, value)
        elif name not in LOOK_UPS:
            yield path, f"unknown look-up{did_you_mean(name, (*LOOK_UPS, *IMAGES, PARENT))}"
        elif not isinstance(value, list):
            yield path, "must be a list of objects"
        else:
            kinds = sorted(each.kind for each in LOOK_UPS[name].resources)
            for index, item in enumerate(value):
                yield from _faults(
                    f"{path}[{index}]", item, [] if LOOK_UPS[name].shape else kinds, namespace
                )


def _image_faults(path: str, name: str, value: Any) -> CaseFaults:
    """Yield the errors of the data of images in registries."""
    if not isinstance(value, dict):
        yield path, "must be a mapping by image"
        return
    for image, answer in value.items():
        try:
            parse_image(image)
        except ImageReferenceError as error:
            yield f"{path}[{image}]", f"no image: {error}"
        if isinstance(answer, str):
            continue
        is_documents = isinstance(answer, list) and all(map(_is_document, answer))
        if name == DIGESTS:
            yield f"{path}[{image}]", "must be a digest, or why there is none"
        elif not is_documents:
            documents = "a list of {bundle} and {payload, signature}"
            yield f"{path}[{image}]", f"must be {documents}, or why there is none"


def _is_document(value: Any) -> bool:
    return isinstance(value, dict) and (
        value.keys() == {"bundle"} or value.keys() == {"payload", "signature"}
    )


def read_images(looked_up: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the look-ups, with signatures and attestations of images as policies get them."""
    if SIGNATURES not in looked_up:
        return looked_up
    attached = {
        image: answer if isinstance(answer, str) else Attached(tuple(map(_document, answer)))
        for image, answer in looked_up[SIGNATURES].items()
    }
    return {**looked_up, SIGNATURES: attached}


def _document(value: Mapping[str, Any]) -> SignatureDocument:
    content = value.get("bundle", value.get("payload"))
    text = content if isinstance(content, str) else json.dumps(content)
    return SignatureDocument(text.encode(), value.get("signature", ""))


def written_images(images: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the data of images in registries as a case sets it: the inverse of `read_images`."""
    return {
        name: {
            image: answer if isinstance(answer, str) else [*map(_write_document, answer.documents)]
            for image, answer in sorted(answers.items())
            if ("@" in image) == (name == SIGNATURES)  # a check has tags and digests in one mapping
        }
        for name, answers in images.items()
    }


def _write_document(document: SignatureDocument) -> dict[str, Any]:
    if document.legacy_signature:
        return {"payload": document.content.decode(), "signature": document.legacy_signature}
    try:
        return {"bundle": json.loads(document.content)}
    except ValueError:
        return {"bundle": document.content.decode(errors="replace")}


def _faults(path: str, object: Any, kinds: list[str], namespace: str) -> CaseFaults:
    """Yield the errors of one object, which must have one of `kinds`.

    Without kinds, it is a summary, which may be from any namespace.
    """
    if not isinstance(object, dict):
        yield path, "must be an object"
        return
    kind = object.get("kind", kinds[0] if len(kinds) == 1 else None)
    if not kinds:
        for key, value in object.items():
            if key not in SUMMARY:
                yield f"{path}.{key}", f"unknown field{did_you_mean(key, SUMMARY)}"
            elif not isinstance(value, type(SUMMARY[key])):
                yield f"{path}.{key}", f"must be {JSON_TYPES[type(SUMMARY[key])]}"
    elif kind not in kinds:
        yield f"{path}.kind", f"must be one of {', '.join(kinds)}"
    else:
        base = {
            "apiVersion": smallest(kind)["apiVersion"] if kind in has_smallest() else "v1",
            "kind": kind,
        }
        whole = {**base, **object}
        yield from ((f"{path}.{field}", text) for field, text in unknown_fields(whole))
        if group_kind(whole) != group_kind(base):
            yield f"{path}.apiVersion", f"must be {base['apiVersion']}"
        if value_at(object, "metadata.namespace") not in (None, namespace):
            yield (
                f"{path}.metadata.namespace",
                f'only namespace "{namespace}" is looked up, that of the request',
            )
