"""The policies in force: of files and ConfigMaps, overridden by policy objects."""

from collections.abc import Iterable, Sequence

from config.settings import Settings
from gatewright.processes.planners import planners_of
from gatewright.processes.proofs import Proofs
from kube.store import Store
from kube.watched import WatchedObject
from webhook.engine import ControllerUser, Engine
from webhook.engine.exceptions import HOME, AppliedExceptions
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import PolicySet, in_force
from webhook.server.cluster_policies import PolicyObjects
from webhook.server.engine_in_force import Policies
from webhook.server.metrics import WebhookMetrics


def policies_of(
    settings: Settings,
    metrics: WebhookMetrics,
    stores: Iterable[Store],
    home: str | None,
    controller_user: ControllerUser | None = None,
    config_maps: Sequence[WatchedObject] = (),
) -> Policies:
    """Return the policies of files, of ConfigMaps and of the objects in `stores`.

    No policy is in force before all of these have been read, and the cases that they carry pass.

    Children are judged as requests of `controller_user`, by default the controller's account in
    `home`. Raises DocumentError or PolicySetError if the files are invalid, or one of
    their cases fails.
    """
    planners = planners_of(settings, home or HOME, controller_user)

    exceptions = AppliedExceptions(home)

    def build(policies: PolicySet, before: Engine | None) -> Engine:
        bound = in_force(policies, catalogue(), home, exceptions)
        return Engine(bound, planners, converted=True, before=before)

    proofs = Proofs(settings, catalogue(), home or HOME, config_maps)
    objects = PolicyObjects(stores, catalogue(), metrics, home or HOME, proofs.prove_object)
    policies = Policies(
        settings.policies,
        proofs.read,
        build,
        objects,
        metrics,
        config_maps,
        proofs.denied_objects,
    )
    policies.refresh()
    return policies
