"""`gatewright check`: judge manifests as the webhook would."""

from collections.abc import Mapping
from datetime import UTC, datetime

import click

from config.documents import DocumentError
from config.settings import Settings
from gatewright.checking import ending_soon, exceptions_of, policy_infos, problem, result, without_effect
from gatewright.git import GitError, changed_files
from gatewright.options import INSTALLED_IN, NAMESPACE_LABELS, POLICIES, NamedPath, settings_options
from gatewright.outputs import FAIL_ON, OUTPUTS, Output, Problem, Report, Result, write
from gatewright.planning import planners_of
from gatewright.policies import HOME, engine_from, policy_documents
from gatewright.sources import read_sources
from gatewright.terminal import progress
from webhook.engine.policy_set import read
from webhook.harness.known import Known, Labels
from webhook.harness.manifests import Judge
from webhook.harness.objects import is_whole
from webhook.policies import catalogue

NO_POLICIES = "no policies given: name policy sets with --policies"


@click.command
@settings_options("policies", "registry", "controller_account", *POLICIES)
@OUTPUTS
@FAIL_ON
@click.option("-n", "--namespace", default="default", help="namespace of objects that name none [default]")
@NAMESPACE_LABELS
@click.option("--changed", metavar="REF", help="judge only files that differ from this Git revision")
@INSTALLED_IN
@click.argument("manifests", nargs=-1, required=True, type=NamedPath(), metavar="MANIFEST…")
def command(
    settings: Settings,
    manifests: tuple[str, ...],
    outputs: tuple[Output, ...],
    fail_on: str,
    namespace: str,
    namespace_labels: Mapping[str, Labels],
    changed: str | None,
    home: str | None,
) -> int:
    """Judge MANIFESTs as the webhook would: files, directories, globs, or - for standard input.

    A directory with a Chart.yaml or a kustomization is rendered by helm, kustomize or kubectl where that is installed.
    Files that .gatewrightignore names are left out. Objects that the controller would create for a custom resource are
    judged with it.
    """
    if not settings.policies:
        raise DocumentError(NO_POLICIES)
    home, now = home or settings.namespace or HOME, datetime.now(UTC)
    documents = policy_documents(settings.policies)
    engine = engine_from(read(documents, catalogue()), home, planners_of(settings, home), settings.policies)
    exceptions = exceptions_of(documents)
    try:
        sources = read_sources(manifests, namespace, None if changed is None else changed_files(changed))
    except GitError as error:
        raise click.BadParameter(str(error), param_hint="--changed") from None
    known = Known((each.value for each in sources.documents if is_whole(each)), namespace, namespace_labels)
    infos = policy_infos(engine.policies)
    results, problems = list[Result](), [problem(DocumentError(each)) for each in sources.problems]
    judge = Judge(engine, known, namespace, now)
    for document in progress(sources.judged, "judged"):
        try:
            results.append(result(judge(document), infos))
        except DocumentError as error:
            problems.append(problem(error))
    if not (results or problems or changed is not None):
        problems.append(Problem(f"{', '.join(manifests)}: no Kubernetes objects"))
    report = Report(
        "check",
        tuple(results),
        tuple(problems),
        notes=(*sources.notes, *without_effect(exceptions, engine.policies, home, now)),
        policies=infos,
        ending=ending_soon(exceptions, now),
        generated=now.isoformat(timespec="seconds").replace("+00:00", "Z"),
    )
    write(report, outputs)
    return report.exit_code(fail_on)
