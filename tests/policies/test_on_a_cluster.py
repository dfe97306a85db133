"""Every case of every policy has the same verdict on a real API server that calls the real webhook."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.documents import parse_documents
from tests.policies.on_a_cluster.apiserver import ApiServer, api_server, webhook
from tests.policies.on_a_cluster.comparison import differences, judged_otherwise
from tests.policies.on_a_cluster.objects import EVERYBODY, KEDA
from tests.policies.on_a_cluster.questions import Question, is_about_policies, questions
from tests.policies.on_a_cluster.requests import creation
from webhook.engine import Engine
from webhook.engine.image_look_ups import IMAGE_LOOK_UPS
from webhook.harness.cases import Trial, load_trials
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import load

HERE = Path(__file__).parent
CRDS = Path(__file__).parents[2] / "config/crd/bases"
REGISTRIES = "only a registry has what it looks up: tests/registries asks real ones"
FEWEST = 1000  # cases asked; a directory that is half there must not pass
NOT_ASKED = {  # why some cases mean nothing on a cluster; `file: case`, whatever its kinds
    "only files leave it out: the API server fills it in before it asks anybody": (
        "service_accounts.yaml: the older name of the field counts",
        "default_namespace.yaml: a manifest that names none may be applied to any namespace",
        "default_namespace.yaml: so may the children of its custom resource",
    ),
    "a cluster has more roles than those of the case, which such a selector selects, too": tuple(
        f"{file}.yaml: {case}"
        for file in ("escalation_rights", "wildcard_rights")
        for case in (
            "a selector of roles without a label selects cluster-admin",
            "a selector of roles without a value of a label does, too",
            "a selector that leaves out the default roles is allowed",
        )
    ),
    "only files have such objects: the API server does not store them": (
        "disruption_budgets.yaml: a malformed workload beside a budget is not the budget's fault",
        "disruption_budgets.yaml: nor a malformed budget that of a workload",
        "probes.yaml: a malformed Service is denied by itself",
        "resource_limits.yaml: a malformed LimitRange fills in nothing",
        "service_selectors.yaml: a malformed Service is denied by itself",
    ),
    "only the audit writes the status that it is about": (
        "policy_impact.yaml: a policy that begins to deny has a warning with the number of objects",
        "policy_impact.yaml: the number is that of the rules before",
    ),
}
# why the API server itself refuses what some cases are about; they are asked all the same
REFUSED = {
    "the API server serves no version that was removed": (
        "deprecated_apis.yaml: a version that was removed is denied",
        "deprecated_apis.yaml: whatever the kind",
        "deprecated_apis.yaml: autoscalers too",
        "deprecated_apis.yaml: which release is a parameter",
        "deprecated_apis.yaml: deprecated versions are denied if the parameter is set",
        "deprecated_apis.yaml: an object that is there may be updated",
    ),
    "the API server validates the object itself; in a file it is judged": (
        "resource_limits.yaml: no containers at all is for the API server to refuse",
        "external_ips.yaml: invalid and ambiguous addresses are denied",
    ),
    "the schema of Gatewright's own kinds does not allow it; in a file it is judged": (
        "policy_objects.yaml: every fault of an exception is reported",
        "policy_objects.yaml: a spec that is a list is no spec",
    ),
}


def title(trial: Trial) -> str:
    """Return the title of a case in the table."""
    return f"{Path(trial.where.split(':')[0]).name}: {trial.name.partition(' [')[0]}"


def why(table: Mapping[str, Sequence[str]], trial: Trial) -> str | None:
    """Return a table's entry for a case, if any."""
    if table is NOT_ASKED and not IMAGE_LOOK_UPS.isdisjoint(trial.looks_up):
        return REGISTRIES
    return next((reason for reason, titles in table.items() if title(trial) in titles), None)


async def answers(api: ApiServer, asked: Sequence[Question]) -> list[list[str]]:
    """Ask, and return the differences of each case."""

    async def one(question: Question) -> list[str]:
        admission = question.trial.admission
        is_dry = admission.operation != "CONNECT"
        said = await api(question.ask, admission.username, admission.groups, dry_run=is_dry)
        wanted = (
            None
            if question.as_if_written is None
            else await api(question.as_if_written, dry_run=True)
        )
        if why(REFUSED, question.trial):
            return (
                []
                if said.is_refused
                else [f"{question.title}: the API server takes it: {said.message}"]
            )
        return [f"{question.title}: {each}" for each in differences(question, said, wanted)]

    return await asyncio.gather(*(one(question) for question in asked))


async def prepare(api: ApiServer, asked: Sequence[Question]) -> list[str]:
    """Create the objects that a case needs; return those that could not be created."""

    async def one(question: Question) -> list[str]:
        try:
            for ask in question.beforehand:
                await api.make(ask)
        except ValueError as error:
            return (
                [] if why(REFUSED, question.trial) else [f"{question.title}: beforehand: {error}"]
            )
        return []

    return [text for texts in await asyncio.gather(*map(one, asked)) for text in texts]


@pytest.mark.controlplane
def test_every_case_has_its_verdict_on_a_real_api_server(
    own_control_plane: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A case has the same verdict and messages on the API server; allowed objects are stored as expected."""
    trials = [
        trial for file in sorted(HERE.glob("*.yaml")) for trial in load_trials(file, catalogue())
    ]
    policies, asked = questions([trial for trial in trials if not why(NOT_ASKED, trial)])
    engine = Engine(
        load(parse_documents(yaml.safe_dump_all(policies).encode(), "policies.yaml"), catalogue())
    )
    wrong = [text for question in asked for text in judged_otherwise(engine, question)]
    plane = own_control_plane(parts=("etcd", "kube-apiserver"), audit=False, service_accounts=True)
    plane.kubectl("apply", "-f", str(CRDS))
    plane.kubectl("apply", "-f-", input=KEDA)
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=90s")

    async def ask_all() -> list[str]:
        first = [question for question in asked if not is_about_policies(question)]
        then = [question for question in asked if is_about_policies(question)]
        async with api_server(plane) as api:
            await api.make(creation(EVERYBODY))
            wrong = await prepare(api, first)
            async with webhook(plane, api, tmp_path, policies):
                wrong += [text for texts in await answers(api, first) for text in texts]
                wrong += await prepare(api, then)
                return wrong + [text for texts in await answers(api, then) for text in texts]

    wrong += asyncio.run(ask_all())
    with capsys.disabled():
        print(f"\n{_table(trials)}")
    known = {title(trial) for trial in trials}
    tables = (*NOT_ASKED.values(), *REFUSED.values())
    wrong += [f"no such case: {each}" for titles in tables for each in titles if each not in known]
    assert not wrong, "\n".join(["not as on a cluster:", *wrong])
    assert len(asked) >= FEWEST


def _table(trials: Sequence[Trial]) -> str:
    counts = Counter(map(_counted_as, trials))
    asked = sum(number for what, number in counts.items() if not what.startswith("not asked"))
    rows = (f"  {number:5} {what}" for what, number in counts.most_common())
    return "\n".join([f"{asked} of {len(trials)} cases asked of a real API server", *rows])


def _counted_as(trial: Trial) -> str:
    if reason := why(NOT_ASKED, trial):
        return f"not asked: {reason}"
    if reason := why(REFUSED, trial):
        return f"refused by the API server itself, as is to be: {reason}"
    return (
        trial.expect if isinstance(trial.expect, str) else next(iter(trial.expect.model_fields_set))
    )
