"""`gatewright check`: judge manifests, or the objects of a cluster, as the webhook would."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

import click

from config.documents import Document
from config.settings import Settings
from gatewright.checks.check_report import once_per_place
from gatewright.checks.checked_tree import IGNORE_FILE, ChangedFiles, GitError
from gatewright.checks.checker import Checker
from gatewright.checks.exceptions import ExceptionWriter, ending_soon
from gatewright.checks.fixes import FixedFile, fixed_files
from gatewright.checks.loaded_policies import PolicySelection
from gatewright.checks.project_file import NO_PROJECT_FILE, ProjectCommand
from gatewright.checks.sources import Sources, read_sources
from gatewright.checks.subjects import Subjects, read_reviews
from gatewright.console.options import (
    CLUSTER,
    FILE,
    INSTALLED_IN,
    NAMESPACE,
    NAMESPACE_LABELS,
    POLICIES,
    REGISTRIES,
    REGISTRY_ACCESS,
    REVIEWS,
    ChartOptions,
    NamedPath,
    chart_options,
    future,
    names_namespace,
    settings_options,
)
from gatewright.console.terminal import show_diff
from gatewright.outputs import FAIL_ON, OUTPUTS, InputProblem, Output, write, write_file
from gatewright.outputs.yaml_text import to_yaml
from webhook.engine.exceptions import HOME
from webhook.engine.match import Labels
from webhook.harness.looked_up import written_images
from webhook.messages import count_noun

MAX_FIX_ROUNDS = 8  # of judging and fixing; two are usual
PASSING = frozenset({"allowed", "mutated", "unmatched"})  # verdicts that need no attention


@click.command(cls=ProjectCommand)
@settings_options(
    "policies",
    "registry",
    "controller_account",
    "kubernetes_policies",
    *POLICIES,
    *REGISTRIES,
    *CLUSTER,
)
@NO_PROJECT_FILE
@click.option(
    "--select", multiple=True, metavar="POLICY", help="judge only by this policy; may be repeated"
)
@click.option(
    "--ignore", multiple=True, metavar="POLICY", help="do not judge by this policy; may be repeated"
)
@OUTPUTS
@FAIL_ON
@NAMESPACE
@NAMESPACE_LABELS
@chart_options
@REVIEWS
@click.option(
    "--changed", metavar="REF", help="judge only files that differ from this Git revision"
)
@click.option(
    "--changed-files",
    is_flag=True,
    help="MANIFESTs are changed files, of any kind, of the working directory: judge them, and the "
    "charts and kustomizations that read them; for hooks",
)
@click.option(
    "--fix",
    is_flag=True,
    help="correct violations in the files if the fix cannot stop an application; report the others",
)
@click.option(
    "--unsafe-fixes",
    is_flag=True,
    help="with --fix or --diff, also make corrections that may stop an application",
)
@click.option("--diff", is_flag=True, help="print what --fix would change, and change nothing")
@click.option(
    "--fix-defaults",
    is_flag=True,
    help="like --fix, and write the fields that mutating policies set",
)
@REGISTRY_ACCESS
@click.option(
    "--record-images",
    type=FILE,
    metavar="FILE",
    help="with --registry-access, write the look-ups of images, as `looked_up` of a test case",
)
@click.option(
    "--all", "lists_all", is_flag=True, help="list objects without findings in the table, too"
)
@click.option(
    "--write-exceptions",
    type=FILE,
    metavar="FILE",
    help="write exceptions for what is denied now; needs --expires and --reason",
)
@click.option(
    "--expires",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DATE",
    callback=future,
    help="when they end (UTC)",
)
@click.option("--reason", metavar="TEXT", help="why there are exceptions")
@click.option(
    "--allow-empty", is_flag=True, help="exit with 0 if there is nothing to judge, for hooks"
)
@INSTALLED_IN
@click.argument("manifests", nargs=-1, type=NamedPath(), metavar="[MANIFEST…]")
def command(
    settings: Settings,
    manifests: tuple[str, ...],
    charts: ChartOptions,
    outputs: tuple[Output, ...],
    fail_on: str,
    namespace: str,
    namespace_labels: Mapping[str, Labels],
    reviews: Path | None,
    changed: str | None,
    home: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    *,
    changed_files: bool,
    fix: bool,
    unsafe_fixes: bool,
    diff: bool,
    fix_defaults: bool,
    lists_all: bool,
    allow_empty: bool,
    registry_access: bool,
    record_images: Path | None,
    write_exceptions: Path | None,
    expires: datetime | None,
    reason: str | None,
) -> int:
    """Judge MANIFESTs as the webhook would: files, directories, globs, or - for standard input.

    A directory with a Chart.yaml or a kustomization is rendered by helm, kustomize or kubectl, if
    installed. Files listed in .gatewrightignore are skipped. Objects that the controller would
    create for a custom resource are judged with it.

    With --kubeconfig, namespace labels, custom kinds and the objects that policies look up are read
    from the cluster and, without --policies, the policies too, with the ValidatingAdmissionPolicies
    and MutatingAdmissionPolicies that are bound. Without MANIFESTs, the objects in the cluster are
    judged. Nothing is written to it.

    Without other arguments, the options are those of .gatewright.yaml or of [tool.gatewright] in
    pyproject.toml.
    """
    if not (manifests or reviews or settings.kubeconfig):
        raise click.UsageError("Missing argument 'MANIFEST…', --reviews or --kubeconfig.")
    fixes = fix or fix_defaults or diff
    for flag, is_given, needed, is_there in (
        ("--unsafe-fixes", unsafe_fixes, "--fix, --fix-defaults or --diff", fixes),
        ("--write-exceptions", write_exceptions, "--expires and --reason", expires and reason),
        (
            "--changed-files",
            changed_files,
            "MANIFESTs, and no --changed",
            manifests and changed is None,
        ),
        ("--record-images", record_images, "--registry-access", registry_access),
    ):
        if is_given and not is_there:
            raise click.UsageError(f"{flag} needs {needed}")

    recorded = [] if reviews is None else list(read_reviews(reviews))

    def judge_manifests() -> Checker:
        changes = ChangedFiles.of(manifests) if changed_files else _since(changed)
        paths = (".",) if changed_files else manifests
        sources = _changed_sources(settings, paths, charts, changes)
        checker = Checker(
            settings,
            home or settings.namespace or HOME,
            Subjects(
                sources if manifests or reviews else None,
                namespace,
                namespace_labels,
                recorded,
                applies=names_namespace(),
            ),
            registry_access=registry_access,
            selection=PolicySelection(select, ignore),
        )
        asyncio.run(checker.run())
        return checker

    try:
        checker = judge_manifests()
        files, notes = list[FixedFile](), list[str]()
        if fixes:
            fix_once = partial(fixed_files, defaults=fix_defaults, unsafe=unsafe_fixes)
            checker, files, notes = _fix(checker, judge_manifests, fix_once, writes=not diff)
    except GitError as error:
        raise click.BadParameter(str(error), param_hint="--changed") from None
    checker.notes += notes
    _except(checker, write_exceptions, reason, expires)
    if record_images:
        write_file(record_images, to_yaml({"looked_up": written_images(checker.images)}))
    if not (
        checker.results or checker.problems or allow_empty or changed is not None or changed_files
    ):
        what = ", ".join(manifests) or "the cluster"
        checker.problems.append(InputProblem(f"{what}: no Kubernetes objects"))
    report = checker.report()
    results, repeats = once_per_place(report.results)
    report = replace(
        report,
        results=tuple(results),
        notes=(*repeats, *report.notes),
        ending=ending_soon(checker.exceptions, checker.now) if checker.exceptions else (),
        unlisted=frozenset() if lists_all else PASSING,
    )
    for file in files if diff else ():
        show_diff(file.diff())
    write(report, tuple(each for each in outputs if each.file or not diff))
    return report.exit_code(fail_on)


def _since(revision: str | None) -> ChangedFiles | None:
    return None if revision is None else ChangedFiles.since(revision)


def _changed_sources(
    settings: Settings,
    manifests: Sequence[str],
    charts: ChartOptions,
    changes: ChangedFiles | None,
) -> Sources:
    """Return what depends on changed files; everything if the policies are among them."""
    own = (*settings.policies, *settings.policies_dir, Path(IGNORE_FILE))
    if changes is None or not changes.touch(own):
        return read_sources(manifests, charts, changes)
    sources = read_sources(manifests, charts)
    sources.skipped.add("the policies have changed", "everything is judged")
    return sources


def _fix(
    checker: Checker,
    judge: Callable[[], Checker],
    fix_once: Callable[..., tuple[list[FixedFile], list[str]]],
    *,
    writes: bool,
) -> tuple[Checker, list[FixedFile], list[str]]:
    """Write fixed files and judge them again, until nothing is left to fix.

    A fix may replace an alias, after which another one can be carried out. Return the last checker,
    the files that would be fixed next, and the notes.
    """
    counts = Counter[Path]()
    files, notes = fix_once(checker.reported)
    for _ in range(MAX_FIX_ROUNDS if writes else 0):
        if not files:
            break
        for file in files:
            file.write()
            counts[file.path] += file.count
        checker = judge()
        # A mutation that adds an item would add it again.
        files, notes = fix_once(checker.reported, adds_items=False)
    fixed = (f"{path}: fixed {count_noun(count, 'field')}" for path, count in counts.items())
    return checker, files, [*fixed, *notes]


def _except(
    checker: Checker, file: Path | None, reason: str | None, expires: datetime | None
) -> None:
    """Write exceptions until nothing is denied that they can cover; note what they cannot."""
    if file is None or expires is None or reason is None:
        return
    last, writer = (
        checker,
        ExceptionWriter(checker.policies, checker.sets[-1].documents, checker.home),
    )
    exceptions = list[Document]()
    # One violation can hide another: only one policy reports a malformed field.
    while writer.add(last.results):
        exceptions = writer.documents(reason, expires)
        last = checker.beside(exceptions)
        asyncio.run(last.run())
    write_file(file, "---\n".join(to_yaml(each.value) for each in exceptions))
    checker.notes.append(f"{file}: {count_noun(len(exceptions), 'exception')}")
    for result in last.results:
        errors = {each.message: None for each in result.violations if each.level == "error"}
        checker.notes += [f"{result.title} is denied with them, too: {text}" for text in errors]
