"""The policies in force: those of files, overridden by the policy objects of the cluster."""

from collections.abc import Callable

from config.settings import Settings
from gatewright.planning import planners_of
from gatewright.policies import policy_set
from webhook.engine import ControllerUser, Engine
from webhook.engine.exceptions import HOME
from webhook.engine.policy_set import PolicySet, in_force
from webhook.policies import catalogue
from webhook.server.metrics import Metrics
from webhook.server.policies import Policies
from webhook.server.policy_objects import PolicyObjects


def policies_of(
    settings: Settings,
    metrics: Metrics,
    objects: PolicyObjects,
    home: str | None,
    known: Callable[[], bool],
    controller_user: ControllerUser | None = None,
) -> Policies:
    """Return the policies of files and cluster; a cluster's object replaces one of the same name in files.

    Children are judged as requests of `controller_user`, by default the controller's account in `home`.

    Raises DocumentError or PolicySetError where the files are invalid at the start. No policy is in force before the
    objects are `known`: listed completely, or absent because their CRDs are not installed.
    """
    files = policy_set(settings.policies)
    planners = planners_of(settings, home or HOME, controller_user)

    def engine(in_the_cluster: PolicySet) -> Engine:
        return Engine(in_force(files.under(in_the_cluster), catalogue(), home), planners)

    def load() -> Engine:
        nonlocal files
        files = policy_set(settings.policies)
        return engine(objects.compile())

    policies = Policies(
        settings.policies, load, metrics, waits_for=lambda: None if known() else "policy objects of the cluster"
    )
    objects.changed, objects.check = policies.mark_changed, engine
    policies.refresh()
    return policies
