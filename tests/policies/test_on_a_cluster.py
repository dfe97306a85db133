"""Every case of every policy has the same verdict on a real API server, which asks the real webhook."""

import asyncio
import json
import re
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from config.documents import parse_documents, read_documents
from controller.reconcilers.registration import Address, registration
from tests.controlplane.api import Api
from tests.controlplane.pki import CertificateAuthority
from tests.controlplane.plane import ControlPlane
from tests.gatewright.processes import Gatewright
from tests.policies.on_a_cluster import (
    SETUP_USER,
    Ask,
    Object,
    Question,
    creation,
    is_about_policies,
    path_of,
    questions,
)
from webhook.engine import Engine
from webhook.engine.policy_set import load
from webhook.harness.bases import smallest
from webhook.harness.cases import Expectation, Finding, Trial, load_trials
from webhook.harness.trial import ask
from webhook.policies import catalogue

HERE = Path(__file__).parent
CRDS = Path(__file__).parents[2] / "config/crd/bases"
AT_ONCE = 16
SECONDS = 30  # for one request on a busy machine
FEWEST = 1000  # cases asked; a directory that is half there must not pass
OURS = re.compile(r'admission webhook "(validate|mutate)\.gatewright\.io" denied the request: ')

NOT_ASKED = {  # why some cases mean nothing on a cluster; `file: case`, whatever its kinds
    "only files leave it out: the API server fills it in before it asks anybody": (
        "service_accounts.yaml: the older name of the field counts",
    ),
}
REFUSED = {  # why the API server itself refuses what some cases are about; they are asked all the same
    "the API server serves no version that was removed": (
        "deprecated_apis.yaml: a version that was removed is denied",
        "deprecated_apis.yaml: whatever the kind",
        "deprecated_apis.yaml: autoscalers too",
        "deprecated_apis.yaml: which release is a parameter",
        "deprecated_apis.yaml: what is only deprecated may be denied",
        "deprecated_apis.yaml: an object that is there may be updated",
    ),
    "the API server validates the object itself; in a file it is judged": (
        "resource_limits.yaml: no containers at all is for the API server to refuse",
    ),
    "the schema of Gatewright's own kinds does not allow it; in a file it is judged": (
        "policy_objects.yaml: every fault of an exception is told",
        "policy_objects.yaml: a spec that is a list is no spec",
    ),
}


@dataclass(frozen=True, slots=True)
class Said:
    """What the API server answered."""

    code: int
    body: Object
    warnings: tuple[str, ...]

    @property
    def is_ours(self) -> bool:
        """Whether it is the denial of our webhook."""
        return OURS.match(self.body.get("message", "")) is not None

    @property
    def message(self) -> str:
        """The code and the message of a failure."""
        return f"{self.code} {self.body.get('message', '')}"


@dataclass(frozen=True, slots=True)
class ApiServer:
    """The API server, asked as anybody."""

    session: aiohttp.ClientSession
    url: str

    async def __call__(self, ask: Ask, user: str = SETUP_USER, groups: Sequence[str] = (), *, dry_run: bool) -> Said:
        """Send one request."""
        headers = [("Content-Type", "application/merge-patch+json" if ask.method == "PATCH" else "application/json")]
        if user != SETUP_USER:
            headers += [("Impersonate-User", user), *(("Impersonate-Group", group) for group in groups)]
        query = [
            *ask.query,
            *([("dryRun", "All")] if dry_run else []),
            *([("fieldValidation", "Strict")] if ask.body else []),
        ]
        async with self.session.request(
            ask.method,
            self.url + ask.path,
            params=query,
            headers=headers,
            data=None if ask.body is None else json.dumps(ask.body),
        ) as response:
            text = await response.text()
            warnings = tuple(_unquoted(each) for each in response.headers.getall("Warning", ()))
            body = json.loads(text) if response.content_type == "application/json" else {"message": text}
            return Said(response.status, body, warnings)

    async def make(self, ask: Ask) -> None:
        """Create or change an object for real, unless it is there."""
        said = await self(ask, dry_run=False)
        if said.code not in (200, 201, 409):
            raise ValueError(said.message)


def _unquoted(warning: str) -> str:
    return re.sub(r"\\(.)", r"\1", warning.partition('"')[2].removesuffix('"'))


@asynccontextmanager
async def api_server(plane: ControlPlane) -> AsyncIterator[ApiServer]:
    """Yield the API server, asked by so many at once."""
    connector = aiohttp.TCPConnector(limit=AT_ONCE, ssl=ssl.create_default_context(cafile=plane.ca_file))
    async with aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=SECONDS, sock_read=SECONDS),
        headers={"Authorization": f"Bearer {plane.token}"},
    ) as session:
        yield ApiServer(session, plane.url)


# The cluster


EVERYBODY: Object = {  # RBAC is not what is tried here
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "everybody"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": f"system:{group}"}
        for group in ("authenticated", "unauthenticated")
    ],
}
CANARY: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "canary"}}
CANARIES = [
    {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": f"canary-{policy}"},
        "spec": {"policy": policy, "match": {"any": [{"namespaces": ["canary"]}]}},
    }
    for policy in ("webapp-names", "webapp-labels")
]


KEDA: Object = {  # its kinds as the API server knows them where KEDA is installed, but for their schema
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "scaledobjects.keda.sh"},
    "spec": {
        "group": "keda.sh",
        "names": {
            "kind": "ScaledObject",
            "plural": "scaledobjects",
            "singular": "scaledobject",
            "listKind": "ScaledObjectList",
        },
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    }
                },
            }
        ],
    },
}


@asynccontextmanager
async def webhook(
    plane: ControlPlane, api: ApiServer, directory: Path, policies: Sequence[Object]
) -> AsyncIterator[None]:
    """Have the API server ask a webhook with these policies."""
    authority = CertificateAuthority()
    for name, content in zip(("tls.crt", "tls.key"), authority.serving_certificate(), strict=True):
        (directory / name).write_bytes(content)
    file = directory / "policies.yaml"
    file.write_text(yaml.safe_dump_all([*policies, *CANARIES], sort_keys=False))
    pair = ("--tls-cert", str(directory / "tls.crt"), "--tls-key", str(directory / "tls.key"))
    with Gatewright(plane, directory, "webhook", "--policies", str(file), *pair) as process:
        await asyncio.to_thread(process.start)
        engine = Engine(load(read_documents(file), catalogue()))
        for configuration in registration("gatewright", engine, Address(process.url, authority.pem), ()):
            for each in configuration["webhooks"]:
                each["timeoutSeconds"] = SECONDS
            await api.make(creation(configuration))
        await asyncio.to_thread(process.until, "asked", lambda: _is_asked(plane))
        yield
        assert process.tracebacks() == []
        process.kill()  # it would wait for the API server to hang up


def _is_asked(plane: ControlPlane) -> bool:
    """Whether the API server has taken in both configurations."""
    api = Api(plane.url, plane.ca_file, plane.token)
    path = f"{path_of(smallest('WebApp'), namespace='canary')}?dryRun=All"
    denied, _ = api.request("POST", path, smallest("WebApp", "2-bad", "canary"))
    _, made = api.request("POST", path, smallest("WebApp", "good", "canary"))
    return denied == 403 and b"webapp-operator" in made


# The comparison


def judged_otherwise(engine: Engine, question: Question) -> Iterator[str]:
    """Yield who else than its policy judges a case, or that nobody does: then to be let in would say nothing."""
    expect = question.trial.expect
    if isinstance(expect, Expectation) and expect.malformed:
        return  # what is malformed is everybody's matter
    judges = {outcome.policy for outcome in ask(engine, question.admission, question.trial.looked_up).outcomes}
    if judges != (set() if expect == "not-matched" else {question.policy}):
        yield f"{told(question)}: judged by {judges or 'nobody'}"


def differences(question: Question, said: Said, as_if_written: Said | None) -> Iterator[str]:
    """Yield what the API server's verdict has otherwise than the case expects."""
    if is_refused(question.trial):
        if said.is_ours or said.code not in (400, 404, 422):
            yield f"expected that the API server itself refuses it, came {said.message}"
        return
    expect = question.trial.expect
    expected = expect if isinstance(expect, Expectation) else Expectation.model_construct()
    if expected.denied or expected.malformed:
        if expected.malformed and not said.is_ours and said.code in (400, 422):
            return
        code = 403 if expected.denied else 400
        if not said.is_ours or said.code != code:
            yield f"expected a denial with {code}, came {said.message}"
            return
        causes = [(each["field"], each["message"], each["reason"]) for each in said.body["details"]["causes"]]
        yield from _findings("violation", question, causes, expected.denied or expected.malformed or [])
        return
    if not _is_let_in(question, said):
        yield f"expected to be let in, came {said.message}"
        return
    ours = [text.partition(": ") for text in said.warnings if re.match(r"p\d+: ", text)]
    warned = [(text.partition(": ")[0], text, policy) for policy, _, text in ours]
    yield from _findings("warning", question, warned, expected.warned or [])
    if as_if_written is not None and as_if_written.code == said.code in (200, 201):
        stored, wanted = _comparable(said.body), _comparable(as_if_written.body)
        if stored != wanted:
            yield f"stored otherwise than expected: {json.dumps(stored)}, not {json.dumps(wanted)}"
    elif as_if_written is not None and said.code in (200, 201):
        yield f"the object that is expected was refused: {as_if_written.message}"


def _is_let_in(question: Question, said: Said) -> bool:
    if said.is_ours:
        return False
    operation = question.trial.admission.operation
    if operation == "CONNECT":
        return said.code == 404  # there is no such pod; who is let in learns of that
    return said.code in (200, 201) or (operation == "CREATE" and said.body.get("reason") == "AlreadyExists")


def _findings(
    noun: str, question: Question, found: Sequence[tuple[str, str, str]], wanted: Sequence[Finding]
) -> Iterator[str]:
    prefix = question.trial.prefix
    left = [(path, question.told(message)) for path, message, policy in found if policy == question.policy]
    yield from (f"{noun} of {policy}: {text}" for _, text, policy in found if policy != question.policy)
    for finding in wanted:
        path, whole = _join(prefix, finding.path), finding.message and _join(prefix, finding.message)
        match = next((each for each in left if each[0] == path and whole in (None, each[1])), None)
        if match is None:
            yield f"missing {noun} at {path}{f' with message {whole!r}' if whole else ''}"
        else:
            left.remove(match)
    yield from (f"unexpected {noun}: {text}" for _, text in left)


def _join(prefix: str, path: str) -> str:
    return f"{prefix}.{path}" if prefix else path


def _comparable(stored: Object) -> Any:
    """Return a stored object without what is another one each time."""
    metadata = stored["metadata"]
    ours = ("uid", "creationTimestamp", "managedFields", "resourceVersion", "generation")
    kept = {key: value for key, value in metadata.items() if key not in ours}
    if "generateName" in metadata:
        del kept["name"]
    text = json.dumps(stored | {"metadata": kept}).replace(metadata["uid"], "UID")
    return json.loads(re.sub(r"kube-api-access-\w{5}", "kube-api-access", text))


# The test


def title(trial: Trial) -> str:
    """Return what the table knows a case by."""
    return f"{Path(trial.where.split(':')[0]).name}: {trial.name.partition(' [')[0]}"


def told(question: Question) -> str:
    """Return how a case is told."""
    return f"{question.trial.where}: {question.trial.name} ({question.id})"


def reason(trial: Trial) -> str | None:
    """Return why a case is not asked."""
    return next((why for why, titles in NOT_ASKED.items() if title(trial) in titles), None)


def is_refused(trial: Trial) -> bool:
    """Whether the API server itself refuses what a case is about."""
    return any(title(trial) in titles for titles in REFUSED.values())


async def answers(api: ApiServer, asked: Sequence[Question]) -> list[list[str]]:
    """Ask, and return the differences of each case."""

    async def one(question: Question) -> list[str]:
        admission = question.trial.admission
        is_dry = admission.operation != "CONNECT"
        said = await api(question.ask, admission.username, admission.groups, dry_run=is_dry)
        wanted = None if question.as_if_written is None else await api(question.as_if_written, dry_run=True)
        return [f"{told(question)}: {each}" for each in differences(question, said, wanted)]

    return await asyncio.gather(*(one(question) for question in asked))


async def prepare(api: ApiServer, asked: Sequence[Question]) -> list[str]:
    """Make what must be there before; return what could not be made."""

    async def one(question: Question) -> list[str]:
        try:
            for ask in question.beforehand:
                await api.make(ask)
        except ValueError as error:
            return [] if is_refused(question.trial) else [f"{told(question)}: beforehand: {error}"]
        return []

    return [text for texts in await asyncio.gather(*map(one, asked)) for text in texts]


@pytest.mark.controlplane
def test_every_case_has_its_verdict_on_a_real_api_server(
    own_control_plane: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is denied here is denied there with the same words; what is let in here is let in and stored as expected."""
    trials = [trial for file in sorted(HERE.glob("*.yaml")) for trial in load_trials(file, catalogue())]
    policies, asked = questions([trial for trial in trials if reason(trial) is None])
    engine = Engine(load(parse_documents(yaml.safe_dump_all(policies).encode(), "policies.yaml"), catalogue()))
    wrong = [text for question in asked for text in judged_otherwise(engine, question)]
    plane = own_control_plane(parts=("etcd", "kube-apiserver"), audit=False, service_accounts=True)
    plane.kubectl("apply", "-f", str(CRDS))
    plane.kubectl("apply", "-f-", input=KEDA)
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")

    async def ask_all() -> list[str]:
        first = [question for question in asked if not is_about_policies(question)]
        then = [question for question in asked if is_about_policies(question)]
        async with api_server(plane) as api:
            for each in (EVERYBODY, CANARY):
                await api.make(creation(each))
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
    if (why := reason(trial)) is not None:
        return f"not asked, since {why}"
    if is_refused(trial):
        return "refused by the API server itself, asked to see that it is so"
    return trial.expect if isinstance(trial.expect, str) else next(iter(trial.expect.model_fields_set))
