"""The engine in force, made anew when the policy files change; a set that cannot be used changes nothing."""

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from webhook.engine import Engine
from webhook.server.content import Content
from webhook.server.metrics import Metrics

log = logging.getLogger("gatewright.webhook.policies")


class PolicyFiles:
    """Policies from files: `engine` is None until a first set has been loaded, and never None again.

    `load` reads the files and builds an engine; what is wrong with them it raises as ValueError or OSError.
    """

    def __init__(self, paths: Iterable[Path], load: Callable[[], Engine], metrics: Metrics) -> None:
        self.engine: Engine | None = None
        self._load = load
        self._content = Content(paths)
        self._metrics = metrics
        self._problem = "not loaded yet"

    def refresh(self) -> None:
        """Load the files if they changed; log what is wrong with them and keep what is in force."""
        if not self._content.changed():
            return
        try:
            self.engine = self._load()
        except (ValueError, OSError) as error:
            self._problem = str(error)
            self._metrics.policy_reload_errors.inc()
            log.error("the policies cannot be used: %s", error)
        else:
            self._metrics.policies.set(len(self.engine.policies))
            log.info("policies in force", extra={"fields": {"policies": len(self.engine.policies)}})

    def ready(self) -> str | None:
        """Say why nothing can be judged, or None."""
        return self._problem if self.engine is None else None
