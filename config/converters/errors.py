"""The error of a conversion."""


class ConversionError(ValueError):
    """The object is not valid in its version; the message names the field."""
