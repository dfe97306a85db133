"""Cases that must pass before policies go in force: of presets, sets and policy objects.

The harness of `gatewright test` runs them. It is imported only if there are cases: it takes some
megabytes.
"""

from collections.abc import Sequence
from pathlib import Path

from config.documents import Document, read_documents
from config.presets import case_file, presets
from config.settings import Settings
from kube.resource import JsonObject
from kube.watched import WatchedObject
from webhook.policy_sets.bound_objects import Catalogue, document_of
from webhook.policy_sets.policy_set import (
    PolicySet,
    carries_cases,
    is_case_file,
    read,
    without_cases,
)
from webhook.server.policy_files import documents_of

MAX_DENIED = 100


class Proofs:
    """Reads the policies of a process, and proves policies by the cases that they carry.

    A preset in the settings is proved with every set: its policies may come from a chart, with
    other actions and parameters, but this version must judge the preset's own cases as it did.
    """

    def __init__(
        self,
        settings: Settings,
        catalogue: Catalogue,
        home: str,
        config_maps: Sequence[WatchedObject] = (),
    ) -> None:
        """Take the paths and presets of the settings, the built-in policies, and ConfigMaps.

        Exceptions from cluster policies are in the namespace `home`.
        """
        self._paths: Sequence[Path] = settings.policies
        self._catalogue = catalogue
        self._config_maps = config_maps
        self._home = home
        named = {name for name, path in presets().items() if path in self._paths}
        self._presets = sorted({*named, *settings.preset_cases})
        self._are_presets_proved = False
        self._denied: dict[str, list[JsonObject]] = {}  # by policy object; "" for the set

    def read(self) -> PolicySet:
        """Return the policies of files and the ConfigMaps, whose cases pass.

        Raises ValueError or OSError.
        """
        documents = documents_of(self._paths, self._config_maps)
        policy_set = read(documents, self._catalogue)
        if not self._are_presets_proved:
            self._prove(
                [each for name in self._presets for each in read_documents(case_file(name))]
            )
            self._are_presets_proved = True
        policies = without_cases(documents)
        carried = [each for each in policies if carries_cases(each.value)]
        files = [each for each in documents if is_case_file(each.value)]
        self._denied[""] = self._prove([*files, *carried], policies)
        return policy_set

    def denied_objects(self) -> list[JsonObject]:
        """Return objects that cases create, and expect to be denied."""
        return [object for objects in list(self._denied.values()) for object in objects]

    def prove_object(self, stored: JsonObject) -> None:
        """Run the cases of a policy object of the cluster. Raises FailedCasesError."""
        document = document_of(stored)
        title = f"{document['kind']} {document['metadata']['name']}"
        self._denied.pop(title, None)
        if carries_cases(document):
            self._denied[title] = self._prove([Document.of_object(document, title)])

    def _prove(
        self, cases: Sequence[Document], carrier: Sequence[Document] = ()
    ) -> list[JsonObject]:
        """Run the cases; return at most MAX_DENIED of the objects that they expect to be denied."""
        if not cases:
            return []
        from webhook.harness.proof import prove

        return prove(cases, self._catalogue, self._home, carrier=carrier)[:MAX_DENIED]
