"""The public API for tests of kinds and controllers.

`kit` has single reconciles on an API server in memory, `fake_apiserver`. Gatewright's image does
not have them.
"""

from gatewright.testing.kit import ApiServer, reconcile

__all__ = ["ApiServer", "reconcile"]
