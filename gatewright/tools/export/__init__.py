"""Write policy sets as Kubernetes' own admission policies, with a list of the losses. Pure.

`native` writes policies and bindings, `scopes` their match constraints and conditions, `files` the
text, and `counterparts` has the built-in policies that CEL can express: `security_rules` those of
Pod Security, by the forms of `pod_rules`, `image_rules` those about images,
`network_rules` those about Ingresses and Services, `volume_rules` those about volumes, and
`workload_rules` those about other fields.
"""

from gatewright.tools.export.files import static_files, text_of
from gatewright.tools.export.native import export

__all__ = ["export", "static_files", "text_of"]
