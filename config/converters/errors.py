"""What a converter says of an object that it cannot turn into another version."""


class ConversionError(ValueError):
    """The object is not what its version says; the text names the field."""
