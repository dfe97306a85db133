"""The error of a converter for an object that it cannot convert."""


class ConversionError(ValueError):
    """The object is not what its version says; the text names the field."""
