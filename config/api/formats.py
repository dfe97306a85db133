"""Formats of text fields that a child gets unchanged.

The parent's type rejects values that the API server would reject in the children. The
CustomResourceDefinition does not have them, since its messages would not name the remedy.
"""

import re
from typing import Annotated

from pydantic import AfterValidator

from config.image_references import ImageReferenceError, parse_image


def text_format(pattern: str, rule: str, fix: str) -> AfterValidator:
    """Return the validator of a text; an empty one counts as unset."""
    whole = re.compile(pattern, re.DOTALL)

    def check(text: str) -> str:
        if text and not whole.fullmatch(text):
            raise ValueError(f"{rule}; {fix}")
        return text

    return AfterValidator(check)


DNS_NAME = r"(?!.{254})[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
ObjectName = Annotated[
    str,
    text_format(DNS_NAME, "not a valid object name", "use lower-case letters, digits, '-' and '.'"),
]
# The kubelet reserves names that begin with two dots.
DATA_KEY = r"(?!\.\.)(?!.{254})(?!\.$)[-._a-zA-Z0-9]+"
DataKey = Annotated[
    str,
    text_format(
        DATA_KEY,
        "not a valid key of a Secret or a ConfigMap",
        "use letters, digits, '-', '_' and '.'",
    ),
]
ProcMount = Annotated[
    str, text_format("Default|Unmasked", "must be Default or Unmasked", "choose one of them")
]
WindowsUser = Annotated[
    str,
    text_format(
        r'([^\\]{1,255}\\)?(?![. ]*$)[^"/\\:;|=,+*?<>@\[\]]{1,104}',
        "not a valid user of Windows",
        r"write DOMAIN\User or User",
    ),
]


def _check_image(text: str) -> str:
    if text:
        try:
            parse_image(text)
        except ImageReferenceError as error:
            fix = "write it as in registry.example.com/team/app:1.2"
            raise ValueError(f"not an image reference: {error}; {fix}") from None
    return text


ImageName = Annotated[str, AfterValidator(_check_image)]
