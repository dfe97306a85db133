"""The functions that expressions may call; importing this package declares them all."""

from webhook.cel.library import (
    collections,  # noqa: F401
    conversions,  # noqa: F401
    formats,  # noqa: F401
    formatting,  # noqa: F401
    network,  # noqa: F401
    operators,  # noqa: F401
    quantities,  # noqa: F401
    semver,  # noqa: F401
    text,  # noqa: F401
    times,  # noqa: F401
    urls,  # noqa: F401
)
