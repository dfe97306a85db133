"""Labels that what is made has from whom it is made for."""

from config.api.meta import CustomResource

INHERITED = ("platform",)


def inherited(parent: CustomResource) -> dict[str, str]:
    """Return the labels that everything made for `parent` carries too, pods and their claims included."""
    return {key: value for key, value in parent.metadata.labels.items() if key in INHERITED}
