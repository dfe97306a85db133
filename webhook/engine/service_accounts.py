"""Which service account a pod runs as."""

from webhook.engine.fields import Fields

FIELD = "serviceAccountName"


def account_of(pod: Fields) -> str:
    """Return its name; `serviceAccount` is an older name of the field, and a pod that names none runs as `default`."""
    return pod.string(FIELD) or pod.string("serviceAccount") or "default"
