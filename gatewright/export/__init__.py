"""Writes policy sets as Kubernetes' own admission policies, with what is lost. Pure.

`native` writes policies and bindings, `scopes` their match, and `counterparts` has the built-in
policies that CEL can express.
"""

from gatewright.export.native import export

__all__ = ["export"]
