"""Policy objects for the tests of export."""


def policy(name="p", **spec):
    """Return a cluster policy."""
    return {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }
