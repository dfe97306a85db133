"""The functions that expressions may call; importing this package declares them all."""

from webhook.cel.library import (
    authorizer,
    collections,
    conversions,
    formats,
    formatting,
    maths,
    network,
    operators,
    quantities,
    semver,
    text,
    times,
    urls,
)

__all__ = [
    "authorizer",
    "collections",
    "conversions",
    "formats",
    "formatting",
    "maths",
    "network",
    "operators",
    "quantities",
    "semver",
    "text",
    "times",
    "urls",
]
