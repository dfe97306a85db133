"""`gatewright demo`: send requests to the real webhook over TLS, without a cluster."""

import asyncio
import base64
import difflib
import ssl
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import aiohttp
import click
import jsonpatch
import orjson
import yaml
from prometheus_client import CollectorRegistry

from certs import issue_ca, issue_serving
from config.defaulting import fill_crd_defaults
from config.documents import read_documents
from config.settings import Settings
from gatewright.commands.certs import write_pairs
from gatewright.console.terminal import say, show_diff, table
from gatewright.processes.policies_in_force import policies_of
from gatewright.processes.webhook_process import WITHOUT_CLUSTER
from webhook.engine import NAMESPACE_LABELS, Attributes
from webhook.engine.exceptions import HOME
from webhook.harness.reviews import Admission, review
from webhook.server.admission import AdmissionHandler
from webhook.server.certificate_pairs import PairFiles
from webhook.server.connections import ServerConfig
from webhook.server.metrics import WebhookMetrics
from webhook.server.serve import listening
from webhook.server.tls import ServingCertificate

SECONDS = 10  # limit for one response
SCALE = {
    "apiVersion": "autoscaling/v1",
    "kind": "Scale",
    "metadata": {"name": "good", "namespace": "production"},
}


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of one admission request."""

    title: str
    verdict: str
    message: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


@click.command
def command() -> None:
    """Serve the production policies over TLS, and print the verdicts on some manifests."""
    config = files("config")
    with (
        as_file(config / "policies" / "production.yaml") as policies,
        as_file(config / "demo" / "manifests.yaml") as manifests,
        tempfile.TemporaryDirectory() as directory,
    ):
        admissions = [
            Admission(
                object=fill_crd_defaults(document.value),
                namespace=document.value["metadata"]["namespace"],
            )
            for document in read_documents(manifests)
        ]
        started = time.perf_counter()
        url, replies = asyncio.run(
            _serve_and_ask(policies, Path(directory), [*admissions, _scaling()])
        )
        _print(url, replies, time.perf_counter() - started)


def _scaling() -> Admission:
    """Return the request that `kubectl scale deployment good --replicas=50` sends."""
    return Admission(
        object=SCALE | {"spec": {"replicas": 50}},
        old_object=SCALE | {"spec": {"replicas": 3}},
        operation="UPDATE",
        namespace="production",
        subresource="scale",
        parent_kind=("apps", "Deployment"),
    )


async def _serve_and_ask(
    policies: Path, directory: Path, admissions: list[Admission]
) -> tuple[str, list[Reply]]:
    now = datetime.now(UTC)
    ca = issue_ca("gatewright demo", now)
    write_pairs(directory, ca, issue_serving(ca, ["localhost"], ["127.0.0.1"], now))
    metrics = WebhookMetrics(CollectorRegistry())
    in_force = policies_of(Settings(policies=[policies]), metrics, [], HOME)
    pair = PairFiles(directory / "tls.crt", directory / "tls.key")
    certificate = ServingCertificate(pair, metrics)
    handler = AdmissionHandler(in_force, metrics, WITHOUT_CLUSTER | {NAMESPACE_LABELS: _labels})
    trust = ssl.create_default_context(cadata=ca.certificate.decode())
    async with (
        listening(
            ServerConfig(host="127.0.0.1", port=0), handler, certificate, metrics
        ) as connections,
        aiohttp.ClientSession(
            f"https://127.0.0.1:{connections.port}",
            connector=aiohttp.TCPConnector(ssl=trust),
            timeout=aiohttp.ClientTimeout(total=SECONDS),
        ) as session,
    ):
        replies = [await _admit(session, admission) for admission in admissions]
    return f"https://127.0.0.1:{connections.port}", replies


def _labels(about: Attributes) -> dict[str, str]:
    return {"kubernetes.io/metadata.name": about.namespace}


async def _admit(session: aiohttp.ClientSession, admission: Admission) -> Reply:
    """Call the webhook as the API server does: /mutate, apply the patch, then /validate."""
    response = await _ask(session, "/mutate", admission)
    after = admission.object
    if "patch" in response:
        after = jsonpatch.apply_patch(after, orjson.loads(base64.b64decode(response["patch"])))
    if response["allowed"]:
        response = await _ask(session, "/validate", replace(admission, object=after))
    verdict = (
        "denied"
        if not response["allowed"]
        else "allowed"
        if after == admission.object
        else "mutated"
    )
    about = admission.about
    title = (
        f"{admission.operation} {about['kind']} {admission.namespace}/{about['metadata']['name']}"
    )
    return Reply(
        title, verdict, response.get("status", {}).get("message", ""), admission.object, after
    )


async def _ask(session: aiohttp.ClientSession, path: str, admission: Admission) -> dict[str, Any]:
    headers = {"Content-Type": "application/json"}
    async with session.post(path, data=review(admission), headers=headers) as response:
        response.raise_for_status()
        answer: dict[str, Any] = orjson.loads(await response.read())["response"]
        return answer


def _print(url: str, replies: list[Reply], seconds: float) -> None:
    say(f"The webhook served {url} with the policies of config/policies/production.yaml.\n")
    table([(reply.verdict, reply.title) for reply in replies], ("VERDICT", "REVIEW"))
    for reply in replies:
        if reply.verdict != "allowed":
            say(f"\n{reply.title}", "bold")
        if reply.verdict == "denied":
            say(reply.message)
        show_diff(_diff(reply))
    counts = {
        verdict: sum(each.verdict == verdict for each in replies)
        for verdict in ("allowed", "mutated", "denied")
    }
    counted = ", ".join(f"{number} {verdict}" for verdict, number in counts.items())
    say(f"\n{len(replies)} objects: {counted}; {seconds * 1000:.0f} ms, certificates included")


def _diff(reply: Reply) -> Iterator[str]:
    """Yield a diff of the mutation, with some context."""
    if reply.verdict == "mutated":
        before, after = (
            yaml.safe_dump(state, sort_keys=False).splitlines()
            for state in (reply.before, reply.after)
        )
        yield from (
            line
            for line in difflib.unified_diff(before, after, lineterm="", n=2)
            if line[:3] not in ("---", "+++")
        )
