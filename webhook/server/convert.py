"""Answers a ConversionReview: converts objects from one version to another.

Pure, and independent of policies, so it works before they are loaded. One object that cannot be
converted fails the review, since the API server expects all or none; the message names it.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import orjson

from config.converters import ConversionError, convert
from webhook.review import Identified, MalformedRequestError, Review, decode_review

API_VERSION, KIND = "apiextensions.k8s.io/v1", "ConversionReview"


class _ConversionRequest(Identified, kw_only=True):
    objects: list[Any]
    desired: str = msgspec.field(name="desiredAPIVersion")


CONVERSION = Review[_ConversionRequest]


def answer(body: bytes) -> tuple[bytes, str]:
    """Return the answer to a ConversionReview, and the error or "".

    Raises NotAReviewError if it cannot be answered.
    """
    try:
        request = decode_review(body, CONVERSION, API_VERSION, KIND)
        uid = request.uid
        return _review(uid, {"status": "Success"}, list(_convert_objects(request))), ""
    except orjson.JSONEncodeError as error:
        problem = f"what became of the objects is no JSON: {error}"
    except ConversionError as error:
        problem = str(error)
    except MalformedRequestError as error:
        uid, problem = error.uid, str(error)
    return _review(uid, {"status": "Failure", "message": problem}, []), problem


def _convert_objects(request: _ConversionRequest) -> Iterator[dict[str, Any]]:
    for number, object in enumerate(request.objects):
        if not isinstance(object, dict):
            raise ConversionError(f"request.objects[{number}]: must be an object")
        try:
            yield convert(object, request.desired)
        except ConversionError as error:
            raise ConversionError(f"{_name(object)}: {error}") from None


def _name(object: dict[str, Any]) -> str:
    metadata = object.get("metadata")
    about = metadata if isinstance(metadata, dict) else {}
    name = "/".join(str(part)[:253] for part in (about.get("namespace"), about.get("name")) if part)
    return f"{str(object.get('kind'))[:64]} {name}".rstrip()


def _review(uid: str, result: dict[str, str], objects: list[dict[str, Any]]) -> bytes:
    response = {"uid": uid, "convertedObjects": objects, "result": result}
    return orjson.dumps({"apiVersion": API_VERSION, "kind": KIND, "response": response})
