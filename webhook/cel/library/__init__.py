"""The functions that expressions may call; importing this package declares them all."""

from webhook.cel.library import (  # noqa: F401
    collections,
    conversions,
    formats,
    formatting,
    network,
    operators,
    quantities,
    semver,
    text,
    times,
)
