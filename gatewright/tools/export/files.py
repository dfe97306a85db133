"""Exported policies as text, and as the files of manifest-based admission control (KEP-5793)."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from config.printable import printable
from gatewright.outputs.yaml_text import to_yaml
from gatewright.tools.export.native import ExportedPolicy
from kube.resource import JsonObject

# Each plugin reads a directory with only its own kinds.
PLUGINS = ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")


def text_of(name: str, lost: Iterable[str], objects: Iterable[JsonObject]) -> str:
    """Return objects as YAML documents, with the losses as comments above the first."""
    comments = "".join(f"# {printable(f'{name}: {text}')}\n" for text in lost)
    return f"---\n{comments}" + "---\n".join(map(to_yaml, objects))


def static_files(exported: Sequence[ExportedPolicy], directory: Path) -> dict[Path, str]:
    """Return a file for each plugin that has policies, and the AdmissionConfiguration of both."""
    files, plugins = dict[Path, str](), list[JsonObject]()
    for plugin in PLUGINS:
        texts = [
            text_of(policy.name, policy.lost, policy.objects)
            for policy in exported
            if policy.objects and policy.objects[0]["kind"] == plugin
        ]
        if texts:
            manifests = directory / plugin
            files[manifests / "policies.yaml"] = "".join(texts)
            configuration = {
                "apiVersion": "apiserver.config.k8s.io/v1",
                "kind": f"{plugin}Configuration",
                "staticManifestsDir": str(manifests),
            }
            plugins.append({"name": plugin, "configuration": configuration})
    admission: JsonObject = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": plugins,
    }
    files[directory / "admission.yaml"] = to_yaml(admission)
    return files
