"""Which service account a pod runs as."""

from webhook.engine.fields import Fields


def field_of(pod: Fields) -> str:
    """Return the field that names the account: `serviceAccount` is an older name of `serviceAccountName`."""
    old = not pod.string("serviceAccountName") and pod.string("serviceAccount")
    return "serviceAccount" if old else "serviceAccountName"


def account_of(pod: Fields) -> str:
    """Return the name of the account; where a pod names none, Kubernetes takes `default`."""
    return pod.string(field_of(pod)) or "default"
