"""`python -m tests.config.regenerate` regenerates every generated file (`make manifests`)."""

import importlib
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import yaml
from prometheus_client import CollectorRegistry
from pydantic.fields import FieldInfo

from config import crds
from config.documents import DocumentError
from config.schemas import METADATA, SchemaFields, TypeRules, collect, collect_demands
from config.settings import PREFIX, Settings
from controller.audit.metrics import AuditMetrics
from controller.reconcilers import own_kinds
from controller.reconcilers.backup_metrics import LastBackups
from controller.registration.metrics import EnforcementMetrics, RegistrationMetrics
from controller.rights import of_kinds, rules_of
from controller.runtime.metrics import ControllerMetrics as Controllers
from controller.runtime.metrics import KindMetrics
from gatewright.cli import COMMANDS, TOOLS
from gatewright.cli import gatewright as command_line
from gatewright.explain import editor_schemas
from gatewright.outputs.yaml_text import to_yaml
from tests.config import policy_pages as pages
from tests.config import reference
from tests.config.chart_files import generated, plain
from tests.config.chart_page import page
from tests.controlplane.binaries import found_helm
from tests.policies.trials import trials_of_policy
from webhook.engine.kinds import KINDS
from webhook.harness.case_file import ExpectedAnswer
from webhook.harness.cases import Trial
from webhook.harness.reviews import ask
from webhook.policy_sets.catalogue import catalogue
from webhook.registries.cache import RegistryMetrics
from webhook.server.cluster_data import RESOURCES
from webhook.server.metrics import WebhookMetrics

ALIKE = frozenset({"ReplicaSet", "ReplicationController", "DaemonSet", "Job", "PodTemplate"})
MOST_EXAMPLES = 3  # of one policy and kind
ROOT = Path(__file__).parents[2]
CHART = "charts/gatewright"
HEADER_OF_SETTINGS = (
    "# Generated from the command line and values.schema.json by `make manifests`; do not edit.\n"
)
OUTDATED = "run `make manifests`, and commit these files"
LEFT_OVER = "delete these files: nothing generates them"
WITHOUT_HELM = """
config/rbac and config/manager are as they were: they are rendered from the chart by helm, which is
not on the PATH. Only a change of the chart, or of the rights of a kind, needs them: `make helm` builds
helm from its Go module (4 to 12 minutes, once); then run `make manifests` again."""


def from_types() -> dict[str, str]:
    """The files generated from API types, kinds, policies and settings, by their path in the repository."""
    audited = [kind.resource for kind in KINDS.values()]
    reports = texts("config/crd/reports")
    files = generated(own_kinds(), RESOURCES, presets(), reports, audited)
    return files | {
        f"{CHART}/files/settings.yaml": chart_settings(),
        "config/own_types.json": own_types(),
    }


def own_types() -> str:
    """The fields of Gatewright's kinds, in the form of config/openapi.json."""
    kinds: dict[str, str] = {}
    types: dict[str, SchemaFields] = {}
    demands: dict[str, TypeRules] = {}
    subresources: dict[str, list[str]] = {}
    for kind in crds.kinds():
        about, schema = kind.definition, crds.schema(kind)
        name, title = f"{about.api_version}.{about.kind}", f"{about.api_version}/{about.kind}"
        collect(schema, name, types)
        collect_demands(schema, name, demands)
        types[name] = {**types[name], "apiVersion": "", "kind": "", "metadata": METADATA}
        kinds[title] = name
        subresources[title] = ["status", *(["scale"] if about.scale else [])]
    found = {
        "kinds": kinds,
        "types": types,
        "required": {name: each.required for name, each in demands.items() if each.required},
        "enums": {name: each.values for name, each in demands.items() if each.values},
        "subresources": subresources,
    }
    return json.dumps(found, indent=0, sort_keys=True) + "\n"


def presets() -> dict[str, str]:
    """The policy sets that the chart offers, by file name."""
    return texts("config/policies")


def texts(folder: str) -> dict[str, str]:
    """The YAML files of a folder, by name."""
    return {path.name: path.read_text() for path in sorted((ROOT / folder).glob("*.yaml"))}


def from_chart(helm: Path) -> dict[str, str]:
    """The files generated from the chart, which reads those of `from_types`."""
    command = [
        helm,
        "template",
        "gatewright",
        ROOT / CHART,
        "--namespace",
        "gatewright-system",
        "--no-hooks",
    ]
    return plain(
        subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout
    )


def from_values() -> dict[str, str]:
    """The chart's README, generated from its values and the rights of kinds; and the names that its schema allows."""
    schema = f"{CHART}/values.schema.json"
    rights = {kind.resource.kind: rules_of(of_kinds([kind])) for kind in own_kinds()}
    return {
        f"{CHART}/README.md": page((ROOT / CHART / "values.yaml").read_text(), rights),
        schema: with_names((ROOT / schema).read_text()),
    }


def with_names(schema: str) -> str:
    """Return the chart's schema with the current presets, kinds and policies in its enumerations.

    Wherever the settings of a Deployment may be given, it has the names of all of them.
    """
    kinds = [kind.resource.kind for kind in own_kinds()]
    names = {
        "preset": ["none", *(name.removesuffix(".yaml") for name in presets())],
        "kindName": ["none", *kinds, *(kind.lower() for kind in kinds)],
        "policyName": sorted(catalogue()),
    }
    for definition, values in names.items():
        schema = re.sub(rf'("{definition}": {{"enum": )\[.*?\]', rf"\1{json.dumps(values)}", schema)
    settings = json.loads(schema)["$defs"]["settings"]["properties"]
    allowed = ", ".join(f'"{name}": true' for name in settings)
    return re.sub(r'"\w+": true(,\s+"\w+": true)+', allowed, schema)


def from_policies() -> dict[str, str]:
    """The pages of the policies, generated from their modules and cases."""
    policies = catalogue()
    pages_of = {
        f"{name}.md": pages.page(policy, examples(name)) for name, policy in policies.items()
    }
    return {
        f"docs/policies/{name}": text
        for name, text in {"README.md": pages.index(policies.values()), **pages_of}.items()
    } | {"docs/policies-from-elsewhere.md": pages.counterparts()}


def playground_examples() -> str:
    """The playground's examples: those of the README, and for each policy a case that is denied or patched."""
    files = {"production": "docs/shop.yaml", "restricted": "config/samples/my-webapp.yaml"}
    found = [
        {
            "name": f"{preset}: {file}",
            "policies": presets()[f"{preset}.yaml"],
            "object": (ROOT / file).read_text(),
            "namespace": "production",
        }
        for preset, file in files.items()
    ]
    for name in catalogue():
        if (trial := _example(name)) is not None:
            texts = (
                to_yaml(object or {})
                for object in (trial.subject.documents[0].value, trial.admission.object)
            )
            found.append(dict(zip(("name", "policies", "object"), (name, *texts), strict=True)))
    return json.dumps(found, indent=1) + "\n"


def _example(name: str) -> Trial | None:
    """Return a case that has only a policy and an object."""
    trials = [
        trial
        for trial in trials_of_policy(name)
        if trial.admission.operation == "CREATE" and not trial.looks_up
    ]
    outcomes = (_denied, _set)
    return next((each for outcome in outcomes for each in trials if outcome(each)), None)


def violations() -> str:
    """Examples of violations: for each policy some small objects that it denies, by default first."""
    found: dict[str, list[Any]] = {}
    for name in sorted(catalogue()):
        objects: list[tuple[bool, int, str]] = []
        for trial in trials_of_policy(name):
            admission, object = trial.admission, trial.admission.object
            is_plain = not trial.looks_up and not trial.derived and not admission.subresource
            if object is None or admission.old_object is not None or not is_plain:
                continue
            if isinstance(trial.expect, ExpectedAnswer) and trial.expect.denied:
                is_default = not trial.engine.policies[0].params.model_fields_set
                text = json.dumps(object, sort_keys=True)
                objects.append((not is_default, len(text), text))
        chosen, numbers = list[Any](), Counter[str]()
        for *_, text in sorted(set(objects)):
            object = json.loads(text)
            numbers[object["kind"]] += 1
            if numbers[object["kind"]] <= MOST_EXAMPLES and object["kind"] not in ALIKE:
                chosen.append(object)
        if chosen:
            found[name] = chosen
    return json.dumps(found, separators=(",", ":")).replace("]}],", "]}],\n") + "\n"


def from_code() -> dict[str, str]:
    """The reference, generated from types, kinds, settings and collectors; and the list of the pages of kinds."""
    return {
        "docs/kinds/README.md": reference.kinds_index(own_kinds()),
        "docs/reference/api.md": reference.api(
            crds.kinds(), {kind.type: kind for kind in own_kinds()}
        ),
        "gatewright/tools/playground/examples.json": playground_examples(),
        "webhook/harness/violations.json": violations(),
        "docs/reference/report.schema.json": reference.report_schema(),
        **{
            f"docs/reference/{name}": text
            for name, text in editor_schemas.render(catalogue().values()).items()
        },
        "docs/reference/commands.md": reference.commands(COMMANDS, TOOLS),
        "docs/reference/settings.md": reference.settings(taken()),
        "docs/reference/metrics.md": reference.metrics(collectors()),
    }


def chart_settings() -> str:
    """The options and variables that the chart accepts in extraArgs and env, and the settings of a Deployment."""
    schema = json.loads((ROOT / CHART / "values.schema.json").read_text())
    commands = {
        name: importlib.import_module(f"gatewright.commands.{name}").command
        for name in ("webhook", "controller")
    }
    known = {
        "flags": {
            name: sorted(
                flag
                for option in command.params
                for flag in (*option.opts, *option.secondary_opts)
                if flag.startswith("-")
            )
            for name, command in commands.items()
        },
        "settings": list(schema["$defs"]["settings"]["properties"]),
        "variables": sorted(PREFIX + name.upper() for name in Settings.model_fields),
    }
    return HEADER_OF_SETTINGS + yaml.safe_dump(known)


def taken() -> dict[str, list[str]]:
    """The commands that have each setting as an option."""
    line = click.Context(command_line)
    options = {name: command_line.get_command(line, name).params for name in (*COMMANDS, *TOOLS)}
    return {
        setting: [
            name
            for name, given in options.items()
            if any(_sets(each, setting, field) for each in given)
        ]
        for setting, field in Settings.model_fields.items()
    }


def _sets(option: click.Parameter, setting: str, field: FieldInfo) -> bool:
    """Whether an option of a command is a setting, not another option with the same name."""
    help = option.help if isinstance(option, click.Option) else None
    return option.name == setting and (help or "").startswith(field.description or "")


def collectors() -> dict[str, CollectorRegistry]:
    """The metric registries, by component."""
    webhook, controller, kind = CollectorRegistry(), CollectorRegistry(), CollectorRegistry()
    WebhookMetrics(webhook)
    RegistryMetrics(webhook)
    shared = Controllers(controller)
    controller.register(LastBackups(tuple))
    for counts in filter(None, (each.counts for each in own_kinds())):
        shared.counter(counts.name, counts.about)
    AuditMetrics(controller, timedelta())
    RegistrationMetrics(controller)
    EnforcementMetrics(controller)
    shared.registry = kind
    KindMetrics("WebApp", shared)
    return {
        "The webhook": webhook,
        "The controller": controller,
        "Each kind, under its own prefix": kind,
    }


def examples(name: str) -> Iterator[pages.Example]:
    """Yield the first case of a policy that is allowed, the first that is denied, and the first that is patched."""
    trials = trials_of_policy(name)
    for title, outcome in (("Allowed", _allowed), ("Denied", _denied), ("Set", _set)):
        told = ((trial, outcome(trial)) for trial in trials if trial.admission.old_object is None)
        trial, text = next(((trial, text) for trial, text in told if text is not None), (None, ""))
        if trial is not None:
            params = trial.engine.policies[0].params.model_dump(by_alias=True, exclude_unset=True)
            yield pages.Example(title, params, trial.admission.object or {}, text)


def _allowed(trial: Trial) -> str | None:
    return (
        "is allowed."
        if trial.expect == "allowed" and trial.admission.operation in ("CREATE", "CONNECT")
        else None
    )


def _denied(trial: Trial) -> str | None:
    if not isinstance(trial.expect, ExpectedAnswer) or not trial.expect.denied:
        return None
    message = ask(trial.engine, trial.admission, trial.looked_up).response["status"]["message"]
    return f"is denied:\n\n```\n{message}\n```"


def _set(trial: Trial) -> str | None:
    if not isinstance(trial.expect, ExpectedAnswer) or not trial.expect.patched:
        return None
    return f"gets:\n\n{pages.block(trial.expect.patched)}"


def stale(files: dict[str, str]) -> list[str]:
    """Return the files that are missing in the repository, or have another content there."""
    paths = {name: ROOT / name for name in files}
    return [
        name
        for name, text in files.items()
        if not paths[name].exists() or paths[name].read_text() != text
    ]


def write(files: dict[str, str]) -> None:
    """Write the files, and print which are new or changed."""
    for name in stale(files):
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[name])
        print(f"wrote {name}")


if __name__ == "__main__":
    write(from_types())
    write(from_values())
    try:
        write(from_policies())
    except DocumentError as error:
        sys.exit(f"no page of a policy without valid cases: {error}")
    write(from_code())
    if helm := found_helm():
        try:
            write(from_chart(helm))
        except subprocess.CalledProcessError:
            sys.exit(
                "the chart cannot be rendered, for the reason above; mend it and run this again"
            )
    else:
        print(WITHOUT_HELM)
